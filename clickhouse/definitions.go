package clickhouse

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"companyscore/scoring"
	"companyscore/sql"
)

var definitionInsert = sql.Query("signal_definition_insert")

type definitionRow struct {
	PipelineVersion string   `ch:"pipeline_version"`
	Position        uint8    `ch:"position"`
	Signal          string   `ch:"signal"`
	Bucket          string   `ch:"bucket"`
	Name            string   `ch:"name"`
	Unit            string   `ch:"unit"`
	Direction       string   `ch:"direction"`
	WeightInBucket  float64  `ch:"weight_in_bucket"`
	Weight          float64  `ch:"weight"`
	RawP10          *float64 `ch:"raw_p10"`
	RawP50          *float64 `ch:"raw_p50"`
	RawP90          *float64 `ch:"raw_p90"`
	AbsentScore     *float64 `ch:"absent_score"`
	Population      string   `ch:"population"`
	Basis           string   `ch:"basis"`
	Curve           string   `ch:"curve"`
	Sources         []string `ch:"sources"`
	NotFor          []string `ch:"not_for"`
	MaxAgeDays      uint16   `ch:"max_age_days"`
}

// writeDefinitions writes the signals of the program's pipeline version for v1_signal_definition.
func (db *DB) writeDefinitions(ctx context.Context) error {
	var rows []*definitionRow
	for i, s := range scoring.Manifest() {
		row := &definitionRow{
			PipelineVersion: scoring.PipelineVersion, Position: uint8(i + 1), Signal: s.ID, Bucket: string(s.Bucket), Name: s.Name,
			Unit:      s.Unit,
			Direction: string(s.Direction), WeightInBucket: s.Weight, Weight: s.Weight * s.Bucket.Weight(), Population: s.Population,
			Basis: s.Basis,
			Curve: s.Normalization, Sources: s.Sources, NotFor: s.NotFor, MaxAgeDays: uint16(s.MaxAge / (24 * time.Hour)),
		}
		if !s.Curve.Share() {
			for score, raw := range map[float64]**float64{20: &row.RawP10, 50: &row.RawP50, 80: &row.RawP90} {
				*raw = new(tenDigits(s.Curve.Raw(score)))
			}
		}
		if score, counts := s.Curve.Absent(); counts {
			row.AbsentScore = &score
		}
		rows = append(rows, row)
	}
	if err := insert(ctx, db, definitionInsert, rows); err != nil {
		return fmt.Errorf("write definitions of signals: %w", err)
	}
	return nil
}

// tenDigits rounds to ten digits, because the inverse of a curve gives 11.999999999999998 for 12.
func tenDigits(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 10, 64), 64)
	if err != nil {
		return x
	}
	return rounded
}
