-- The comments named values that do not exist.
ALTER TABLE score_history COMMENT COLUMN geo_scope 'Reach of the company: global, north_america, europe, asia_pacific, latin_america, middle_east_africa or unknown';

ALTER TABLE score_latest COMMENT COLUMN geo_scope 'Reach of the company: global, north_america, europe, asia_pacific, latin_america, middle_east_africa or unknown';
