package server

import (
	"context"
	"maps"
	"strings"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
	"companyscore/server/api"
	"companyscore/server/job"
)

const (
	// retryPoll is the Retry-After of a pending job, in seconds.
	retryPoll = "5"
	// jobsMax bounds the jobs of one poll.
	jobsMax = 1000
	// jobIDMax bounds the length of an id in such a poll.
	jobIDMax = 64
	// jobSizeMax is a size in bytes that one job in an answer does not exceed. A job has its domain twice, at most 253
	// bytes each, and its id, at most 64 bytes, which JSON may escape with six bytes for each.
	jobSizeMax = 2 << 10
)

// getJob returns a job. It settles the job if its run has ended.
func (s *Server) getJob(c *fiber.Ctx) error {
	id := strings.Clone(c.Params("job_id"))
	jobs, err := s.jobsOf(c, []string{id})
	if err != nil {
		return err
	}
	item := s.jobItem(c, id, jobs)
	if item.problem != nil {
		return item.problem
	}
	c.Set(fiber.HeaderCacheControl, noStore)
	if item.pending() {
		c.Set(fiber.HeaderRetryAfter, retryPoll)
	}
	return c.JSON(item.job)
}

// getJobs returns many jobs. It settles those whose runs have ended.
func (s *Server) getJobs(c *fiber.Ctx) error {
	ids, err := queryIDs(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	if err := s.reserveAnswer(c, ctx, jobSizeMax*(1+len(ids))); err != nil {
		return err
	}
	jobs, err := s.jobsOf(c, ids)
	if err != nil {
		return err
	}
	list := api.JobList{Jobs: make([]api.JobItem, len(ids))}
	pending := false
	for i, id := range ids {
		item := s.jobItem(c, id, jobs)
		if item.problem != nil {
			problem := item.problem.body()
			list.Jobs[i] = api.JobItem{JobID: id, Status: item.problem.Status, Error: &problem}
			continue
		}
		list.Jobs[i] = api.JobItem{JobID: id, Status: fiber.StatusOK, Job: item.job}
		pending = pending || item.pending()
	}
	c.Set(fiber.HeaderCacheControl, noStore)
	if pending {
		c.Set(fiber.HeaderRetryAfter, retryPoll)
	}
	return c.JSON(list)
}

// queryIDs returns copies of the ids of the query. The error is errJobIDs.
func queryIDs(c *fiber.Ctx) ([]string, error) {
	text := strings.Clone(c.Query("ids"))
	if text == "" {
		return nil, errJobIDs.with("List the jobs to read: GET /v1/jobs?ids=ID,ID.")
	}
	ids := strings.Split(text, ",")
	if len(ids) > jobsMax {
		return nil, &errJobIDs
	}
	seen := make(map[string]int, len(ids))
	for i, id := range ids {
		if id == "" || len(id) > jobIDMax {
			return nil, errJobIDs.with("Id %d of ids is not the id of a job. Separate ids by one comma.", i+1)
		}
		if first, ok := seen[id]; ok {
			return nil, errJobIDs.with("Ids %d and %d of ids are the same.", first+1, i+1)
		}
		seen[id] = i
	}
	return ids, nil
}

// jobsOf reads jobs and settles those of the caller whose runs have ended. The result has the jobs of other
// accounts too, for jobItem to refuse.
func (s *Server) jobsOf(c *fiber.Ctx, ids []string) (map[string]job.Job, error) {
	who := callerOf(c)
	if who.Mode == account.Test {
		return nil, nil // the sandbox has no jobs
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	jobs, err := s.Jobs.Get(ctx, ids...)
	if err != nil {
		return nil, err
	}
	own, others := make(map[string]job.Job, len(jobs)), make(map[string]job.Job)
	for id, j := range jobs {
		if j.AccountID == who.Account.ID {
			own[id] = j
		} else {
			others[id] = j
		}
	}
	if own, err = s.Jobs.Settle(ctx, own); err != nil {
		return nil, err
	}
	maps.Copy(own, others)
	return own, nil
}

// jobItem is the answer about one job: the job or a problem.
type jobItem struct {
	job     *api.Job
	problem *problem
}

func (i jobItem) pending() bool { return i.job.Status == string(job.Pending) }

// jobItem returns the answer about a job of jobsOf.
func (s *Server) jobItem(c *fiber.Ctx, id string, jobs map[string]job.Job) jobItem {
	j, found := jobs[id]
	switch {
	case !found:
		return jobItem{problem: &errJobNotFound}
	case j.AccountID != callerOf(c).Account.ID:
		return jobItem{problem: &errForbidden}
	}
	body := &api.Job{JobID: j.ID, Status: string(j.Status), Domain: j.Domain, CreatedAt: api.Time(j.CreatedAt),
		FailureReason: string(j.FailureReason)}
	if j.Status == job.Pending {
		if j.Progress.Total > 0 {
			body.Progress = &api.Progress{SourcesDone: j.Progress.Done, SourcesTotal: j.Progress.Total}
		}
		return jobItem{job: body}
	}
	completed := api.Time(j.CompletedAt)
	body.CompletedAt = &completed
	if j.Status == job.Complete {
		s.Cache.DropOlder(j.Domain, j.ScoredAt) // the next read must return this score
		body.Result = &api.Result{Domain: j.Domain, ScoredAt: api.Time(j.ScoredAt)}
		body.ScoreURL = "/v1/score/" + j.Domain
	}
	return jobItem{job: body}
}
