package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Partition names a table that is partitioned by range of a timestamptz, one
// partition a UTC day. Old days leave by dropping a partition, which costs nothing
// however many rows it holds.
type Partition struct {
	Table string
	Days  int // whole days that are kept after a day has ended
	// KeepWhile is a query with two parameters, the day's bounds; while it returns
	// true neither the day is dropped nor any after it, however old. Empty: age alone
	// decides.
	KeepWhile string
}

const daysAhead = 7

const clockQuery = `select clock_timestamp()`

// Clock returns what time it is by the database, whose clock is one for all its clients.
func Clock(ctx context.Context, pool *pgxpool.Pool) (now time.Time, err error) {
	if err := pool.QueryRow(ctx, clockQuery).Scan(&now); err != nil {
		return now, fmt.Errorf("ask the database for the time: %w", err)
	}
	return now, nil
}

// EnsurePartitions makes the partitions of every day from the oldest that is kept
// to a week ahead. It may be called at any time and by several processes at once.
//
// Some rows are written with this process's time and others with the database's. Where
// these clocks differ each has its days, so that one which is wrong takes no place from
// the other.
func EnsurePartitions(ctx context.Context, pool *pgxpool.Pool, tables []Partition) error {
	return ensurePartitions(ctx, pool, tables, time.Now())
}

func ensurePartitions(ctx context.Context, pool *pgxpool.Pool, tables []Partition, now time.Time) error {
	databaseNow, err := Clock(ctx, pool)
	if err != nil {
		return err
	}
	for _, table := range tables {
		have, err := partitionsOf(ctx, pool, table.Table)
		if err != nil {
			return err
		}
		for _, day := range append(table.needed(databaseNow), table.needed(now)...) {
			name := partitionName(table.Table, day)
			if have[name] {
				continue
			}
			if err := attachDay(ctx, pool, table.Table, day); err != nil {
				return err
			}
			have[name] = true
		}
	}
	return nil
}

// needed are the days that must have a partition.
func (p Partition) needed(now time.Time) (days []time.Time) {
	today := now.UTC().Truncate(24 * time.Hour)
	for d := -p.Days; d <= daysAhead; d++ {
		days = append(days, today.AddDate(0, 0, d))
	}
	return days
}

// attachDay makes a table and attaches it, which takes a weaker lock on the parent
// than creating a partition in place: traffic goes on meanwhile.
func attachDay(ctx context.Context, pool *pgxpool.Pool, table string, day time.Time) error {
	name := partitionName(table, day)
	statement := fmt.Sprintf(`
		do $$ begin
			perform pg_advisory_xact_lock(hashtext('partilha.partition.%[1]s'));
			if to_regclass('%[2]s') is null then
				create table %[2]s (like %[1]s including defaults including constraints including storage);
				alter table %[1]s attach partition %[2]s for values from ('%[3]s') to ('%[4]s');
			end if;
		end $$`, table, name, day.Format(time.RFC3339), day.AddDate(0, 0, 1).Format(time.RFC3339))
	if _, err := pool.Exec(ctx, statement); err != nil {
		return fmt.Errorf("make partition %s: %w", name, err)
	}
	return nil
}

// EnsureDay makes the partition of the day of at, however long ago that was. It is dropped
// again as any other day that is older than its table keeps.
func EnsureDay(ctx context.Context, pool *pgxpool.Pool, table string, at time.Time) error {
	return attachDay(ctx, pool, table, at.UTC().Truncate(24*time.Hour))
}

// DropPartitions drops the days that are older at that moment than their tables keep, of
// each table the oldest first and none after one that is held back: what is left of a table has no
// holes. It returns the names of what it dropped.
func DropPartitions(ctx context.Context, pool *pgxpool.Pool, tables []Partition, now time.Time) ([]string, error) {
	var dropped []string
	for _, table := range tables {
		have, err := partitionsOf(ctx, pool, table.Table)
		if err != nil {
			return dropped, err
		}
		oldest := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -table.Days)
		for _, name := range slices.Sorted(maps.Keys(have)) { // of one table names sort by their days
			day, err := time.Parse("20060102", name[strings.LastIndex(name, "_p")+2:])
			if err != nil || !day.Before(oldest) {
				continue
			}
			held := false
			if table.KeepWhile != "" {
				if err := pool.QueryRow(ctx, table.KeepWhile, day, day.AddDate(0, 0, 1)).Scan(&held); err != nil {
					return dropped, fmt.Errorf("ask whether %s is needed: %w", name, err)
				}
			}
			if held {
				break
			}
			if _, err := pool.Exec(ctx, "do $$ begin set local lock_timeout = '2s'; drop table if exists "+name+"; end $$"); err != nil {
				return dropped, fmt.Errorf("drop partition %s: %w", name, err)
			}
			dropped = append(dropped, name)
		}
	}
	return dropped, nil
}

func partitionName(table string, day time.Time) string {
	return table + "_p" + day.Format("20060102")
}

const partitionsQuery = `
select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = to_regclass($1)`

func partitionsOf(ctx context.Context, pool *pgxpool.Pool, table string) (map[string]bool, error) {
	rows, err := pool.Query(ctx, partitionsQuery, table)
	if err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w", table, err)
	}
	defer rows.Close()
	have := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("list partitions of %s: %w", table, err)
		}
		have[name] = true
	}
	return have, rows.Err()
}
