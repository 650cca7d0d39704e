// Package command has the command `companyscore request`.
package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"companyscore/internal/account"
	"companyscore/internal/config"
	"companyscore/internal/stores"
)

// showMax bounds the rows of one id.
const showMax = 100

// New returns the command.
func New() *cobra.Command {
	var where config.Stores
	cmd := &cobra.Command{Use: "request", Short: "Show answered requests"}
	where.Flags(cmd.PersistentFlags())

	var asJSON bool
	show := &cobra.Command{
		Use:   "show ID",
		Short: "Show the requests with an X-Request-Id",
		Long: fmt.Sprintf(`Show the requests of the last 30 days whose answer has this X-Request-Id, newest first, at most %d.
A request has its row within seconds of its answer. Callers may send one id several times.
Exits 1 if there is none: scores answered from memory beyond --request-rows per second, and
requests while the buffer of a server is full, are only counted (v1_request_minute).`, showMax),
		Example: "  companyscore request show 01a1fc94-100b-728c-b5ba-54b776aba535",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			store, err := stores.OpenRequests(cmd.Context(), where)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, store.Close()) }()
			found, err := store.FindRequests(cmd.Context(), args[0], showMax)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return fmt.Errorf("no request %s in the last 30 days; rows are written within seconds, and scores answered from memory "+
					"beyond --request-rows per second are only counted", args[0])
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), found)
			}
			return writeTable(cmd.OutOrStdout(), found)
		},
	}
	show.Flags().BoolVar(&asJSON, "json", false, "print JSON, one request per line")
	cmd.AddCommand(show)
	return cmd
}

func writeTable(out io.Writer, requests []account.Request) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AT\tREQUEST\tACCOUNT\tKEY\tROUTE\tSTATUS\tERROR\tANSWERED BY\tTOOK\tBYTES\tCHARGED\tJOB")
	for _, r := range requests {
		charged := "no"
		if r.Charged {
			charged = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%d\t%s\t%s\n", r.At.Format("2006-01-02 15:04:05.000"), r.ID, dash(r.AccountID), dash(r.KeyID),
			r.Route, r.Status, dash(r.ErrorCode), r.AnsweredBy, r.Took, r.Bytes, charged, dash(r.JobID))
	}
	return w.Flush()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func writeJSON(out io.Writer, requests []account.Request) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	for _, r := range requests {
		err := e.Encode(struct {
			ID         string    `json:"id"`
			At         time.Time `json:"at"`
			AccountID  string    `json:"account_id,omitempty"`
			KeyID      string    `json:"key_id,omitempty"`
			Route      string    `json:"route"`
			Status     uint16    `json:"status"`
			Error      string    `json:"error,omitempty"`
			AnsweredBy string    `json:"answered_by"`
			TookUs     int64     `json:"took_us"`
			Bytes      uint64    `json:"bytes"`
			Charged    bool      `json:"charged"`
			JobID      string    `json:"job_id,omitempty"`
			Server     string    `json:"server"`
		}{r.ID, r.At, r.AccountID, r.KeyID, r.Route, r.Status, r.ErrorCode, r.AnsweredBy, r.Took.Microseconds(), r.Bytes, r.Charged, r.JobID, r.Server})
		if err != nil {
			return err
		}
	}
	return nil
}
