-- name: database_create
-- Creates the database of the service. params: database Identifier.
CREATE DATABASE IF NOT EXISTS {database:Identifier}
