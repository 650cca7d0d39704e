package cmd

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/template"

	"companyscore/clickhouse"
)

// connectionText is what each tool wants to be told. docs/sql/connect has what was tried.
var connectionText = template.Must(template.New("connection").Parse(`ClickHouse over HTTP{{if .TLS}} with TLS{{end}}
  URL        {{.Scheme}}://{{.Host}}:{{.Port}}
  host       {{.Host}}
  port       {{.Port}}   (HTTP; there is no native protocol)
  user       {{.User}}
  password   {{.Password}}
  database   {{.Database}}

Grafana (plugin ClickHouse)
  Server address {{.Host}}, Server port {{.Port}}, Protocol HTTP, Secure connection {{if .TLS}}on{{else}}off{{end}},
  Username {{.User}}, Password, Default database {{.Database}}
Metabase (ClickHouse)
  Host {{.Host}}, Port {{.Port}}, Username {{.User}}, Password, Databases {{.Database}}, secure connection {{if .TLS}}on{{else}}off{{end}}
Superset (package clickhouse-connect), SQLAlchemy URI
  clickhousedb://{{.User}}:PASSWORD@{{.Host}}:{{.Port}}/{{.Database}}{{if .TLS}}?secure=true{{end}}
dbt (dbt-clickhouse), profile for sources only: the user writes nothing
  type: clickhouse, driver: http, host: {{.Host}}, port: {{.Port}}, user: {{.User}}, password: PASSWORD, schema: {{.Database}}, secure: {{.TLS}}
DBeaver and other JDBC tools (driver ClickHouse)
  jdbc:clickhouse:{{.Scheme}}://{{.Host}}:{{.Port}}/{{.Database}}   user {{.User}}
Python
  clickhouse_connect.get_client(host="{{.Host}}", port={{.Port}}, username="{{.User}}", password="PASSWORD", database="{{.Database}}"{{if .TLS}}, secure=True{{end}})
DuckDB, from a Parquet file
  curl -s --fail --user {{.User}}:"{{.Shell}}" '{{.Scheme}}://{{.Host}}:{{.Port}}/?default_format=Parquet' --data-binary 'SELECT * FROM v1_score_latest' > latest.parquet
  duckdb -c "SELECT count(*) FROM 'latest.parquet'"
curl
  curl -s --user {{.User}}:"{{.Shell}}" {{.Scheme}}://{{.Host}}:{{.Port}}/ --data-binary 'SELECT count() FROM v1_score_latest'

docs/sql/connect has a page for each of these tools, R and Excel, and what was tried.
`))

// printConnection prints what SQL tools want to be told to connect to an address, http(s)://user:password@host:port/database. It does not
// print the password but the file that has it, "" if there is none.
func printConnection(w io.Writer, address, passwordFile string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return clickhouse.ErrHTTPAddress
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "8123", "https": "8443"}[u.Scheme]
	}
	password, shell := "that of the address", "$PASSWORD"
	if passwordFile != "" {
		password, shell = "in the file "+passwordFile, "$(cat "+passwordFile+")"
	}
	if err := connectionText.Execute(w, map[string]any{
		"Scheme": u.Scheme, "TLS": u.Scheme == "https", "Host": u.Hostname(), "Port": port, "User": u.User.Username(), "Password": password,
		"Shell":    shell,
		"Database": strings.Trim(u.Path, "/"),
	}); err != nil {
		return fmt.Errorf("print the connection: %w", err)
	}
	return nil
}
