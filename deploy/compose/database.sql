-- Run once by the image, as its superuser, when the database is new: the role and the database of docs/postgresql.md.
\set password `cat /run/secrets/database_password`
CREATE ROLE gateway LOGIN PASSWORD :'password';
CREATE DATABASE orders OWNER gateway ENCODING 'UTF8' TEMPLATE template0;
