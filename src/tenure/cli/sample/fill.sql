-- Fills the sample product. Everything follows from row numbers through hashes, so every fill gives the same rows.

CREATE TEMP TABLE plan ON COMMIT DROP AS
SELECT *, sum(members) OVER up_to_here - members AS first_member, sum(events) OVER up_to_here - events AS first_event,
       375 * 86400e6 / greatest(orders, 1) AS order_pace, 375 * 86400e6 / greatest(events, 1) AS event_pace
  FROM (VALUES
    (1, 'northwind-clinic', 'Northwind Clinic',              'enterprise', 'CA', 480, 18000, 320000),
    (2, 'lindner-bakery',   'Bäckerei Lindner & Söhne',      'team',       'DE',  34,  2600,   7200),
    (3, 'obrien-freight',   'O''Brien "Fast" Freight, Ltd.', 'team',       'IE',  21,  1150,   4100),
    (4, 'noor-textiles',    'نور للمنسوجات',                 'team',       'AE',  17,   980,   2700),
    (5, 'tanaka-optics',    '田中光学株式会社',                'business',   'JP',  58,  1400,   5300),
    (6, 'casa-azul',        'Casa Azul – Diseño',            'starter',    'MX',   6,   140,    610),
    (7, 'osei-hardware',    'Osei Hardware',                 'starter',    'GH',   9,   260,    840),
    (8, 'quiet-harbour',    'Quiet Harbour Books',           'starter',    'NZ',   1,     0,      0)
  ) AS tenants (place, id, name, plan, country, members, orders, events)
WINDOW up_to_here AS (ORDER BY place);

INSERT INTO app.accounts (id, name, plan, country, created_at)
SELECT id, name, plan, country, timestamptz '2023-02-01 09:00:00+00' + place * interval '37 days 03:11:07.250'
  FROM plan ORDER BY place;

-- What people really type into a box called "note".
CREATE TEMP TABLE notes (place, note) ON COMMIT DROP AS VALUES
    (0, 'Please leave at the back door.'),
    (1, E'Two lines:\nthe second one'),
    (2, E'From a Windows form:\r\nsecond line\r\n'),
    (3, E'a lone carriage return\rin the middle'),
    (4, 'She said "no, thank you", twice'),
    (5, '"quoted from end to end"'),
    (6, E'tab\tseparated\tvalues'),
    (7, '=HYPERLINK("https://example.com/","Click")'),
    (8, '@SUM(A1:A9)'),
    (9, '+49 30 901820'),
    (10, '-42'),
    (11, ''),
    (12, ' spaces on both sides '),
    (13, 'NULL'),
    (14, E'\\N'),
    (15, E'\\.'),
    (16, E'C:\\temp\\new "folder"'),
    (17, E'Glückwunsch! 🎂🥳 für die 👨\u200d👩\u200d👧'),
    (18, E'שלום, مرحبا, \u200fright to left\u200e and back'),
    (19, E'Cafe\u0301 is not the same bytes as Café'),
    (20, E'line separator\u2028and no-break\u00a0space, zero\u200bwidth'),
    (21, '東京都千代田区, 2階'),
    (22, ',;|' || E'\n' || ',,,'),
    (23, 'Robert''); DROP TABLE orders;--'),
    (24, '<script>alert("hello")</script> & more'),
    (25, repeat('A very long note that somebody pasted from a contract. ', 40));

INSERT INTO app.members (id, account_id, email, full_name, role, active, preferences, invited_at, last_seen_at)
SELECT first_member + n, plan.id, 'member' || n || '@' || plan.id || '.example',
       given.names[1 + (h & 15)] || ' ' || family.names[1 + (h >> 4 & 15)],
       CASE WHEN n = 1 THEN 'owner' WHEN n % 9 = 0 THEN 'admin' ELSE 'member' END,
       n % 13 <> 0,
       jsonb_build_object('locale', (ARRAY['en-GB', 'de-DE', 'ja-JP', 'ar-AE', 'es-MX'])[1 + h % 5],
                          'digest', n % 3 = 0, 'theme', CASE WHEN n % 4 = 0 THEN 'dark' END),
       timestamptz '2023-03-01 08:00:00+00' + (h % 50000000) * interval '1 second',
       CASE WHEN n % 7 > 0 THEN timestamptz '2025-06-01 00:00:00+00' + (h % 15000000) * interval '1.000001 second' END
  FROM plan, generate_series(1, members) AS n,
       LATERAL (SELECT hashint8extended(n, place) & 2147483647) AS hash (h),
       (SELECT ARRAY['Amara', 'Björn', 'Chloé', 'Deniz', 'Ewa', 'Farid', 'Grace', 'Haruki', 'Inês', 'Ji-woo', 'Kwame',
                     'László', 'Mei', 'Νίκος', 'Oluwaseun', 'София']) AS given (names),
       (SELECT ARRAY['Adeyemi', 'Bøe', 'Castro-Ruiz', 'D''Angelo', 'Eriksson', 'Fürst', 'García', 'Haddad', 'Ivanova',
                     'Łukasz', 'Mensah', 'Nguyễn', 'O''Brien', '佐藤', 'Van den Berg', 'زيدان']) AS family (names);

INSERT INTO app.orders (id, account_id, member_id, status, currency, total, lines, tags, note, placed_at)
SELECT row_number() OVER (ORDER BY place, n), plan.id, first_member + 1 + h % members,
       ('{draft,placed,paid,paid,shipped,shipped,shipped,refunded}'::app.order_status[])[1 + (h & 7)],
       CASE WHEN country IN ('DE', 'IE') THEN 'EUR' WHEN country = 'JP' THEN 'JPY' ELSE 'USD' END,
       CASE WHEN n % 997 = 0 THEN -0.01 ELSE 0.01 END * (1 + (h >> 3) % 480000),
       jsonb_build_array(
           jsonb_build_object('sku', 'SKU-' || h % 900, 'name', goods.names[1 + h % 5], 'quantity', 1 + h % 7,
                              'unit_price', h % 9999 * 0.01),
           jsonb_build_object('sku', 'SHIPPING', 'name', NULL, 'quantity', 1, 'unit_price', 4.90)),
       CASE h % 5 WHEN 0 THEN '{}'::text[] WHEN 1 THEN '{gift,"wrap \"blue\""}' WHEN 2 THEN '{b2b,"net,30"}'
                  WHEN 3 THEN '{NULL,été}' ELSE '{web}' END,
       CASE WHEN n % 3 > 0 THEN notes.texts[1 + h % 26] END,
       timestamptz '2024-12-22 00:00:00+00' + (n * order_pace - h % 900000000) * interval '1 microsecond'
  FROM plan, generate_series(1, orders) AS n,
       LATERAL (SELECT hashint8extended(n, 100 + place) & 2147483647) AS hash (h),
       (SELECT array_agg(note ORDER BY place) FROM notes) AS notes (texts),
       (SELECT ARRAY['Sourdough, 1 kg', 'Lens "Clear"', E'Box\n(large)', 'Tee – bleu', 'Freight, per km']) AS goods (names);

-- Events repeat themselves in life too: a few thousand payloads, told apart by who, when, from where and how much.
CREATE TEMP TABLE payloads (place, kind, payload) ON COMMIT DROP AS
SELECT place, kinds.names[1 + place % 12],
       CASE WHEN place % 12 = 0
            THEN jsonb_build_object('text', notes.texts[1 + place / 12 % 26], 'edited', place % 7 = 0, 'previous', NULL)
            ELSE jsonb_build_object('request', to_hex(h), 'ms', h % 1900 * 0.1, 'path', paths.names[1 + h % 6])
       END
  FROM generate_series(0, 4095) AS place, LATERAL (SELECT hashint8extended(place, 7) & 2147483647) AS hash (h),
       (SELECT array_agg(note ORDER BY place) FROM notes) AS notes (texts),
       (SELECT ARRAY['comment.added', 'appointment.booked', 'appointment.moved', 'export.requested', 'file.uploaded',
                     'invoice.paid', 'invoice.sent', 'login.failed', 'login.succeeded', 'member.invited', 'order.placed',
                     'page.viewed']) AS kinds (names),
       (SELECT ARRAY['/', '/orders', '/orders/new?from="mail"', '/café/menü', '/settings', '/a,b;c']) AS paths (names);
ANALYZE payloads;

INSERT INTO app.events (id, account_id, member_id, kind, payload, occurred_at, ip, amount, labels)
SELECT first_event + n, plan.id, CASE WHEN h & 31 > 0 THEN first_member + 1 + h % members END,
       payloads.kind, payloads.payload,
       timestamptz '2024-12-22 00:00:00+00' + (n * event_pace - h % 90000000) * interval '1 microsecond',
       CASE WHEN h % 11 > 0 THEN inet '10.0.0.0' + h % 16000000 WHEN h % 2 = 0 THEN inet '2001:db8::' + h END,
       CASE h & 7 WHEN 0 THEN h % 1000000 * 0.01 WHEN 1 THEN h % 5000 * -0.001
                  WHEN 2 THEN CASE WHEN h % 1000 = 2 THEN h + 12345678901234567890.123456789 ELSE 0.10 END END,
       CASE (h >> 3) % 6 WHEN 0 THEN '{}'::text[] WHEN 1 THEN '{web}' WHEN 2 THEN '{mobile,beta}'
                         WHEN 3 THEN '{"needs \"review\"",NULL}' WHEN 4 THEN '{über,"a,b"}' ELSE E'{"two\nlines"}' END
  FROM plan, generate_series(1, events) AS n,
       LATERAL (SELECT hashint8extended(n, plan.place) & 2147483647) AS hash (h)
  JOIN payloads ON payloads.place = h & 4095;

SELECT setval('app.members_id_seq', (SELECT max(id) FROM app.members)),
       setval('app.orders_id_seq', (SELECT max(id) FROM app.orders)),
       setval('app.events_id_seq', (SELECT max(id) FROM app.events));
