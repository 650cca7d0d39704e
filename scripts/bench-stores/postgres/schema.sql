CREATE UNLOGGED TABLE score_history (
    domain text COLLATE "C" NOT NULL, scored_at timestamp NOT NULL, written_at timestamp NOT NULL, company_name text COLLATE "C" NOT NULL,
    sector text COLLATE "C" NOT NULL, geo_scope text COLLATE "C" NOT NULL, profile text COLLATE "C" NOT NULL, rating text COLLATE "C" NOT NULL,
    composite float8 NOT NULL, scale_premium float8 NOT NULL, team_structure float8 NOT NULL, market_position float8 NOT NULL,
    momentum_tailwinds float8 NOT NULL, financial_health float8 NOT NULL
);
