package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The library opens every connection as its user "default", and has no statement that logs in as another one. Its users file can define
// roles, though, and the engine checks the rights of a connection by its current roles. The user "default" has two: connections of the
// service keep both, those of analysts switch to roleAnalysts. It may read the public database and nothing else; the same role exists in
// deploy/clickhouse/users.xml. Views have the rights of their definer, so the role needs none on the tables.
const (
	roleService  = "service"
	roleAnalysts = "analysts"
	roleRecipes  = "recipes"
)

// accessDir is the directory with the configuration of the engine, in the data directory.
const accessDir = "access"

// writeAccess writes the configuration of the engine and returns the path of its main file. public is the database that analysts may read,
// and memory the bytes above which the engine refuses to allocate, 0 for its default.
func writeAccess(path, public string, memory uint64) (config string, err error) {
	dir := filepath.Join(path, accessDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("write users of the engine: %w", err)
	}
	users := filepath.Join(dir, "users.xml")
	config = filepath.Join(dir, "config.xml")
	// Writes of temporary tables are refused by the guard. The engine wants the right for table functions such as zeros and for EXPLAIN in
	// a subquery.
	grants := func(statements ...string) string {
		return "<grants><query>" + strings.Join(statements, "</query><query>") + "</query></grants>"
	}
	for file, text := range map[string]string{
		config: "<clickhouse><users_config>" + xmlEscaper.Replace(users) + "</users_config>" +
			"<max_server_memory_usage>" + strconv.FormatUint(memory, 10) + "</max_server_memory_usage></clickhouse>\n",
		users: "<clickhouse><profiles><default/></profiles><quotas><default/></quotas>\n" +
			"<roles>\n<" + roleService + ">" + grants("GRANT ALL ON *.* WITH GRANT OPTION") + "</" + roleService + ">\n" +
			"<" + roleAnalysts + ">" + grants("GRANT SELECT ON "+xmlEscaper.Replace(quoteName(public))+".*",
			"GRANT CREATE TEMPORARY TABLE ON *.*") + "</" + roleAnalysts + ">\n" +
			"<" + roleRecipes + ">" + grants("GRANT READ ON FILE", "GRANT CREATE TEMPORARY TABLE ON *.*") + "</" + roleRecipes +
			">\n</roles>\n" +
			"<users><default><password/><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>" +
			grants("GRANT "+roleService+", "+roleAnalysts+", "+roleRecipes) + "</default></users></clickhouse>\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("write users of the engine: %w", err)
		}
	}
	return config, nil
}

var xmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
