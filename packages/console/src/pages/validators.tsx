/** The state of the installation: validators with the changes that they have not applied yet, Postgres, and webhooks. */

import { validators } from '@keyward/contract/management/validators'

import { type ItemOf, useList, useRead } from '../api/hooks.ts'
import { Screen } from '../parts/page-header.tsx'
import { DotBadge, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

const t = text.operator
/** The numbers of changes and of due deliveries from which something is wrong. */
const MANY_BEHIND = 1_000
const MANY_DUE = 1_000
type Validator = ItemOf<typeof validators.listValidators>

const COLUMNS: readonly Column<Validator>[] = [
  { title: t.validator, cell: ({ name }) => name },
  { title: t.version, cell: ({ version }) => version ?? t.oldVersion },
  {
    title: t.ready,
    cell: ({ ready }) => <DotBadge color={ready ? 'teal' : 'red'}>{ready ? t.ready : t.notReady}</DotBadge>,
  },
  { title: t.behind, cell: ({ behindBy }) => (behindBy === null ? t.loading : t.changes(behindBy)) },
  { title: t.seen, cell: ({ seenAt }) => <When at={seenAt} /> },
  { title: t.started, cell: ({ startedAt }) => <When at={startedAt} /> },
]

const REFRESH_MS = 5_000
const BYTES_PER_MIB = 1024 ** 2

function Figure({ term, value, hint, isGood }: { term: string; value: string; hint: string; isGood: boolean }) {
  return (
    <div>
      <dt>
        <span className="status-dot" data-good={isGood} aria-hidden="true" />
        {term}
      </dt>
      <dd>
        {value}
        <p className="sub">{hint}</p>
      </dd>
    </div>
  )
}

function Figures({ list }: { list: readonly Validator[] }) {
  const { data } = useRead(validators.readInstallation, {}, REFRESH_MS)
  const ready = list.filter((one) => one.ready).length
  const behind = Math.max(0, ...list.map(({ behindBy }) => behindBy ?? 0))
  const versions = [...new Set(list.map(({ version }) => version ?? t.oldVersion))]
  if (!data) return null
  const { database, webhooks } = data
  return (
    <dl className="figures card">
      <Figure
        term={t.validators}
        value={t.readyOf(ready, list.length)}
        hint={versions.length === 1 ? t.oneVersion(versions[0] ?? '') : t.versions(versions)}
        isGood={ready > 0 && ready === list.length && versions.length === 1}
      />
      <Figure term={t.behind} value={behind.toLocaleString()} hint={t.behindHint} isGood={behind < MANY_BEHIND} />
      <Figure
        term={t.postgres}
        value={t.mebibytes(Math.ceil(database.bytes / BYTES_PER_MIB))}
        hint={t.postgresVersion(database.version)}
        isGood
      />
      <Figure
        term={text.nav.webhooks}
        value={webhooks.due.toLocaleString()}
        hint={t.webhooksHint(webhooks.disabledEndpoints)}
        isGood={webhooks.due < MANY_DUE}
      />
    </dl>
  )
}

export default function Validators() {
  const list = useList(validators.listValidators, {}, REFRESH_MS)
  return (
    <Screen title={text.nav.validators}>
      {!list.isPending && <Figures list={list.items} />}
      <ListTable list={list} columns={COLUMNS} empty={t.noValidators} label={t.validators} />
    </Screen>
  )
}
