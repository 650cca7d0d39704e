package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/sql"
)

var (
	lockTake  = sql.Query("migration_lock_take")
	lockBeat  = sql.Query("migration_lock_beat")
	lockRead  = sql.Query("migration_lock_read")
	lockBreak = sql.Query("migration_lock_break")
	lockBury  = sql.Query("migration_lock_bury")
	lockDrop  = sql.Query("migration_lock_drop")
)

const (
	lockPollEvery = 100 * time.Millisecond
	// lockSilenceMax is how long a holder may be silent before it counts as dead.
	// A living one writes five times in that time.
	lockSilenceMax = 15 * time.Second
)

// schemaLock is held by the one migrator at work in a database.
//
// ClickHouse has no locks, but of several that make one table only one succeeds:
// the lock is held while the table schema_lock exists. The holder writes to it
// now and then, so that a lock whose holder died can be told from one that is in
// use, and is broken by renaming it to a name that only one breaker can take.
type schemaLock struct {
	db   *DB
	stop context.CancelFunc
	done chan struct{}
	lost error // set before done is closed
}

// lockSchema waits for the lock until ctx ends. The context it returns ends when
// the lock is lost or given back.
func (db *DB) lockSchema(ctx context.Context) (*schemaLock, context.Context, error) {
	for {
		err := db.exec(ctx, lockTake)
		if err == nil {
			held, stop := context.WithCancel(ctx)
			l := &schemaLock{db: db, stop: stop, done: make(chan struct{})}
			go l.beat(held)
			return l, held, nil
		}
		if isCode(err, codeTableExists) {
			err = db.breakDeadLock(ctx)
		}
		if err != nil {
			return nil, nil, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("wait for another migrator: %w", context.Cause(ctx))
		case <-time.After(lockPollEvery):
		}
	}
}

// breakDeadLock removes the lock if its holder has been silent for too long.
func (db *DB) breakDeadLock(ctx context.Context) error {
	var held struct {
		MadeS    uint32 `ch:"made_s"`
		SilentMs int64  `ch:"silent_ms"`
	}
	found, err := db.first(ctx, &held, lockRead)
	if isCode(err, codeUnknownTable) || err == nil && !found {
		return nil // given back meanwhile
	}
	if err != nil || held.SilentMs < db.lockSilenceMax.Milliseconds() {
		return err
	}
	grave := ch.Named("grave", "schema_lock_"+strconv.FormatUint(uint64(held.MadeS), 10))
	if err := db.exec(ctx, lockBreak, grave); err != nil {
		if isCode(err, codeUnknownTable, codeTableExists) {
			return nil // another was faster
		}
		return err
	}
	return db.exec(ctx, lockBury, grave)
}

func (l *schemaLock) beat(ctx context.Context) {
	defer close(l.done)
	defer l.stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(l.db.lockSilenceMax / 5):
		}
		if err := l.db.exec(ctx, lockBeat); isCode(err, codeUnknownTable) {
			l.lost = errors.New("another migrator took over, as this one was silent for too long: run it again")
			return
		}
	}
}

// release gives the lock back, also when the context of its taking has ended.
func (l *schemaLock) release(ctx context.Context) error {
	l.stop()
	<-l.done
	if l.lost != nil {
		return l.lost
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.db.timeout)
	defer cancel()
	return l.db.exec(ctx, lockDrop)
}
