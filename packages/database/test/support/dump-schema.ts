/** Writes the schema of a database: the tables with their indexes, triggers and grants, and the signatures of the functions. */

import type { Pool } from 'pg'

/** Selects the text of each table in the order of the names, without partitions. */
const TABLES = `
  select format(e'create %stable %I (\\n  %s\\n)%s%s;\\n%s', case relpersistence when 'u' then 'unlogged ' end, relname,
    (select string_agg(text, e',\\n  ' order by kind, place, text) from (
      select 0 as kind, attnum::integer as place, format('%I %s%s%s', attname, format_type(atttypid, atttypmod),
        case when attnotnull then ' not null' end,
        case attgenerated when 's' then format(' generated always as (%s) stored', pg_get_expr(adbin, adrelid))
          else ' default ' || pg_get_expr(adbin, adrelid) end) as text
      from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where attrelid = c.oid and attnum > 0 and not attisdropped
      union all
      select 1, position(contype::text in 'pufc'), format('constraint %I %s', conname, pg_get_constraintdef(oid))
      from pg_constraint where conrelid = c.oid and contype in ('p', 'u', 'f', 'c')
    ) members),
    ' partition by ' || pg_get_partkeydef(c.oid), ' with (' || array_to_string(reloptions, ', ') || ')',
    (select string_agg(text || e';\\n', '' order by kind, text) from (
      select 0 as kind, pg_get_indexdef(indexrelid) as text from pg_index
      where indrelid = c.oid and not exists (select from pg_constraint where conindid = indexrelid and contype in ('p', 'u'))
      union all
      select 1, pg_get_triggerdef(oid) from pg_trigger where tgrelid = c.oid and not tgisinternal
      union all
      select 2, format('grant %s on %I to %s', string_agg(lower(privilege_type), ', ' order by privilege_type), relname, grantee::regrole)
      from aclexplode(relacl) where grantee <> relowner group by grantee
      union all
      select 2, format('grant %s (%s) on %I to %s', lower(privilege_type), string_agg(attname, ', ' order by attnum), relname, grantee::regrole)
      from pg_attribute, aclexplode(attacl) where attrelid = c.oid group by privilege_type, grantee
    ) additions)) as text
  from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition order by relname`

/** Selects the signature of each function, and the roles that may execute it. functions/ contains the definitions. */
const FUNCTIONS = `
  select format(e'function %s(%s) returns %s%s;\\n', proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
    (select string_agg(' to ' || grantee::regrole, '' order by grantee::regrole::text) from aclexplode(proacl) where grantee <> proowner))
    as text
  from pg_proc p where pronamespace = 'public'::regnamespace and not exists (
    select from pg_depend d where d.objid = p.oid and d.deptype = 'e') order by text`

export async function dumpSchema(pool: Pool): Promise<string> {
  const textOf = async (statement: string, between: string): Promise<string> =>
    (await pool.query<{ text: string }>(statement)).rows.map(({ text }) => text).join(between)
  return [
    '-- The schema that `migrate` creates. The test packages/database/test/schema.test.ts compares it, and writes it with the option -u.\n',
    (await textOf(TABLES, '\n'))
      .replaceAll(/public\.| USING btree/g, '')
      .replaceAll('timestamp with time zone', 'timestamptz')
      // Postgres 15 encloses an indexed time in one more pair of parentheses.
      .replaceAll(/\(\((\([^\n]* AT TIME ZONE 'UTC'::text\))\)\)/g, '($1)'),
    await textOf(FUNCTIONS, ''),
  ].join('\n')
}
