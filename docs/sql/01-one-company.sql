-- What is the newest score of a company?
-- One row, or none when the company has no score of the current version. A condition on the domain reads a few hundred
-- rows, however many companies there are.
-- 21,501 examples: 1 row.
-- Columns: domain, scored_at, rating, composite, scale_premium, team_structure, market_position, momentum_tailwinds,
-- financial_health, confidence
SELECT domain, scored_at, rating, composite, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health, confidence
FROM v1_score_latest
WHERE domain = 'apple.com'
