-- Keys, indexes, and the role that exports read with.

-- The tenant comes first, then the dataset's key: an export reads one stretch of the index, in order, unsorted.
ALTER TABLE app.accounts ADD PRIMARY KEY (id);
ALTER TABLE app.members ADD PRIMARY KEY (account_id, id), ADD FOREIGN KEY (account_id) REFERENCES app.accounts;
ALTER TABLE app.orders ADD PRIMARY KEY (account_id, id),
    ADD FOREIGN KEY (account_id, member_id) REFERENCES app.members;
-- No key to members: what happened stays on record when a member goes.
ALTER TABLE app.events ADD PRIMARY KEY (account_id, id), ADD FOREIGN KEY (account_id) REFERENCES app.accounts;

-- The reader may read and nothing else. Row-level security is the second lock: Tenure names the tenant in every
-- query, and sets `tenure.tenant_id` besides, so that even a dataset without a tenant column would show one tenant.
GRANT USAGE ON SCHEMA app TO tenure_reader;
GRANT SELECT ON app.accounts, app.members, app.orders, app.events TO tenure_reader;

ALTER TABLE app.accounts ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.members ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.events ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON app.accounts TO tenure_reader
    USING (id = current_setting('tenure.tenant_id', true));
CREATE POLICY one_tenant ON app.members TO tenure_reader
    USING (account_id = current_setting('tenure.tenant_id', true));
CREATE POLICY one_tenant ON app.orders TO tenure_reader
    USING (account_id = current_setting('tenure.tenant_id', true));
CREATE POLICY one_tenant ON app.events TO tenure_reader
    USING (account_id = current_setting('tenure.tenant_id', true));

SET LOCAL default_statistics_target = 10;
ANALYZE app.accounts, app.members, app.orders, app.events;
