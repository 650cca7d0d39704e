package queue

import (
	"embed"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
)

//go:embed *.lua
var luaFiles embed.FS

// The scripts of this package; each file's header lists its arguments and returns.
var (
	startScript     = Script(lua("start.lua"))
	claimScript     = Script(lua("claim.lua"))
	heartbeatScript = Script(lua("heartbeat.lua"))
	finishScript    = Script(lua("finish.lua"))
	releaseScript   = Script(lua("release.lua"))
	reclaimScript   = Script(lua("reclaim.lua"))
	abortScript     = Script(lua("abort.lua"))
)

// Script returns a script of the cold path. Its text may use the functions of run.lua,
// which define the layout of a run. Its first keys must be [ScriptKeys].
func Script(text string) *goredis.Script {
	return goredis.NewScript(lua("run.lua") + text)
}

// ScriptKeys returns the keys that every script of the cold path requires, followed by
// more.
func ScriptKeys(more ...string) []string {
	keys := []string{
		redis.Leases(), redis.Retries(), redis.RunLog(),
		redis.Run(""), redis.InFlight(""), redis.Lane(""), redis.Turns(""),
	}
	return append(keys, more...)
}

func lua(name string) string {
	text, err := luaFiles.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(text)
}
