package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"companyscore/client"
)

// open returns a client of the sandbox. COMPANYSCORE_KEY has a test key.
func open() *client.Client {
	c, err := client.New(client.Config{URL: os.Getenv("COMPANYSCORE_URL"), Key: os.Getenv("COMPANYSCORE_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

func Example() {
	c, err := client.New(client.Config{URL: os.Getenv("COMPANYSCORE_URL"), Key: os.Getenv("COMPANYSCORE_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	score, err := c.ScoreAndWait(context.Background(), "acme.test", client.WithEvidence())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s, %.1f, likely %.0f to %.0f\n", score.Domain, score.Rating, score.Composite, score.Evidence.Interval.Low,
		score.Evidence.Interval.High)
	// Output: acme.test: SVC-1, 67.2, likely 64 to 71
}

// Branch on sentinels with errors.Is. The fields of an Error have the details.
func ExampleError() {
	_, err := open().Score(context.Background(), "example.com")
	var refused *client.Error
	switch {
	case errors.Is(err, client.ErrNotScored):
		fmt.Println("score it with ScoreAndWait")
	case errors.Is(err, client.ErrMonthlyCap):
		fmt.Println("wait for the next month")
	case errors.Is(err, client.ErrWrongMode) && errors.As(err, &refused):
		fmt.Println(refused.Status, refused.Code)
	}
	// Output: 400 sandbox: only ['acme.test', 'cohort.test', 'struggling.test', 'unicorn.test'] supported
}

// The second read sends the tag of the first. The answer 304 is free.
func ExampleClient_Score() {
	c := open()
	for range 2 {
		score, err := c.Score(context.Background(), "unicorn.test")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(score.Rating, score.Composite, score.Response.NotModified)
	}
	// Output:
	// SVC-1+ 79.4 false
	// SVC-1+ 79.4 true
}

func ExampleClient_Batch() {
	items, err := open().Batch(context.Background(), []string{"acme.test", "struggling.test", "not a domain"})
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range items {
		if item.Err != nil {
			fmt.Println(item.Domain, "has no score:", errors.Is(item.Err, client.ErrInvalidDomain))
			continue
		}
		fmt.Println(item.Domain, item.Score.Rating)
	}
	// Output:
	// acme.test SVC-1
	// struggling.test SVC-4
	// not a domain has no score: true
}

func ExampleClient_StartMany() {
	service := open()
	many, err := service.StartMany(context.Background(), []string{"acme.test", "struggling.test"})
	if err != nil {
		log.Fatal(err)
	}
	jobs, err := service.WaitMany(context.Background(), many.Jobs())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(many.Summary.Stored, "stored,", len(jobs), "runs waited for")
	// Output:
	// 2 stored, 0 runs waited for
}

func ExampleClient_History() {
	var newest float64
	records := 0
	for record, err := range open().History(context.Background(), "acme.test") {
		if err != nil {
			log.Fatal(err)
		}
		if records++; records == 1 {
			newest = record.Composite
		}
	}
	fmt.Println(newest, records >= 4)
	// Output: 67.2 true
}

func ExampleClient_Confidence() {
	confidence, err := open().Confidence(context.Background(), "struggling.test")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(confidence.Band, confidence.SignalsTotal, len(confidence.Missing) > 0)
	// Output: directional 67 true
}

func ExampleClient_Cohort() {
	cohort, err := open().Cohort(context.Background(), "cohort.test")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cohort.Target.Rating, cohort.Cohort.Count, len(cohort.Members))
	// Output: SVC-3 12 12
}
