-- window: the last so many seconds, by the database's clock.
SELECT seen.at - make_interval(secs => %(seconds)s), seen.at FROM (SELECT clock_timestamp() AS at) AS seen;
