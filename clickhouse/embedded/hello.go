package embedded

import "github.com/ClickHouse/ch-go/proto"

// helloQuery is the first query of clickhouse-go on each of its connections; see hello.
const helloQuery = "SELECT displayName(), version(), revision(), timezone()"

// hello returns the result of clickhouse-go's first query. The driver reads that result at its own protocol revision, but libchdb
// writes revision 0. The result reports revision 0, so the driver reads all later results at revision 0.
func hello(e *engine, clientRevision int) ([]byte, error) {
	var name, version, zone proto.ColStr
	var revision proto.ColUInt32
	name.Append("companyscore embedded ClickHouse")
	version.Append(e.version)
	revision.Append(0)
	zone.Append(e.zone)
	columns := []proto.InputColumn{
		{Name: "displayName()", Data: name}, {Name: "version()", Data: version},
		{Name: "revision()", Data: revision}, {Name: "timezone()", Data: zone},
	}
	var b proto.Buffer
	block := proto.Block{Columns: len(columns), Rows: 1, Info: proto.BlockInfo{BucketNum: -1}}
	err := block.EncodeBlock(&b, clientRevision, columns)
	return b.Buf, err
}
