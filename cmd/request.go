package cmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/stores"
	"companyscore/internal/table"
)

// requestsShownMax bounds the rows of one id.
const requestsShownMax = 100

// requestCommand returns the command `request`.
func requestCommand() *cobra.Command {
	var where config.Stores
	cmd := &cobra.Command{Use: "request", Short: "Show answered requests"}
	where.Flags(cmd.PersistentFlags())

	var accountID string
	var format cli.Output
	show := &cobra.Command{
		Use:   "show ID",
		Short: "Show the requests with an X-Request-Id",
		Long: fmt.Sprintf(`Show the requests of the last 30 days whose answer has this X-Request-Id, newest first, at most %d.
A request has its row within seconds of its answer. Callers choose ids and may send one several
times, so several accounts may have sent it: --account selects the requests of one.
Exits 1 if there is none: scores answered from memory beyond --request-rows per second, and
requests while the buffer of a server is full, are only counted (v1_request_minute).`, requestsShownMax),
		Example: `  companyscore request show 01a1fc94-100b-728c-b5ba-54b776aba535
  companyscore request show order-17 --account 01a1fc20-f758-7217-a5d9-7f7b1960770c`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			store, err := stores.OpenRequests(cmd.Context(), where)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, store.Close()) }()
			found, err := store.FindRequests(cmd.Context(), args[0], accountID, requestsShownMax+1)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return fmt.Errorf("no request %s in the last 30 days; rows are written within seconds, and scores answered from memory "+
					"beyond --request-rows per second are only counted", args[0])
			}
			rows := make([]shownRequest, min(len(found), requestsShownMax))
			for i := range rows {
				rows[i] = newShownRequest(found[i])
			}
			if len(found) > requestsShownMax {
				fmt.Fprintf(cmd.ErrOrStderr(),
					"There are more than %d requests with this id; these are the newest. --account shows those of one account.\n",
					requestsShownMax)
			}
			return cli.PrintList(cmd.OutOrStdout(), format, rows, requestColumns)
		},
	}
	show.Flags().StringVar(&accountID, "account", "", "only the requests of this account")
	format.Flag(show)
	cmd.AddCommand(show)
	return cmd
}

// shownRequest is a request as it is printed.
type shownRequest struct {
	At         time.Time `json:"at"`
	ID         string    `json:"id"`
	AccountID  string    `json:"account_id,omitempty"`
	KeyID      string    `json:"key_id,omitempty"`
	Route      string    `json:"route"`
	Status     int       `json:"status"`
	Error      string    `json:"error,omitempty"`
	AnsweredBy string    `json:"answered_by"`
	TookUs     int64     `json:"took_us"`
	Bytes      uint64    `json:"bytes"`
	Charged    bool      `json:"charged"`
	JobID      string    `json:"job_id,omitempty"`
	Server     string    `json:"server"`
}

func newShownRequest(r table.Request) shownRequest {
	return shownRequest{
		At: r.At, ID: r.ID, AccountID: r.AccountID, KeyID: r.KeyID, Route: r.Route, Status: int(r.Status), Error: r.ErrorCode,
		AnsweredBy: r.AnsweredBy,
		TookUs:     r.Took.Microseconds(), Bytes: r.Bytes, Charged: r.Charged, JobID: r.JobID, Server: r.Server,
	}
}

var requestColumns = []cli.Column[shownRequest]{
	{Name: "at", Value: func(r shownRequest) any { return r.At }},
	{Name: "request", Value: func(r shownRequest) any { return r.ID }},
	{Name: "account", Value: func(r shownRequest) any { return r.AccountID }},
	{Name: "key", Value: func(r shownRequest) any { return r.KeyID }},
	{Name: "route", Value: func(r shownRequest) any { return r.Route }},
	{Name: "status", Value: func(r shownRequest) any { return r.Status }},
	{Name: "error", Value: func(r shownRequest) any { return r.Error }},
	{Name: "answered_by", Value: func(r shownRequest) any { return r.AnsweredBy }},
	{Name: "took_us", Value: func(r shownRequest) any { return r.TookUs }},
	{Name: "bytes", Value: func(r shownRequest) any { return r.Bytes }},
	{Name: "charged", Value: func(r shownRequest) any { return r.Charged }},
	{Name: "job", Value: func(r shownRequest) any { return r.JobID }},
	{Name: "server", Only: cli.CSV, Value: func(r shownRequest) any { return r.Server }},
}
