/** The state of the installation: validators with the changes that they have not applied yet, Postgres, and webhooks. */

import { validators } from '@keyward/contract/management/validators'

import { type ItemOf, useList, useRead } from '../api/hooks.ts'
import { Screen } from '../parts/page-header.tsx'
import { DotBadge, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { counted } from '../text.ts'

const t = {
  webhooksHint: (disabled: number) =>
    `deliveries waiting, ${disabled === 0 ? 'no endpoint' : counted(disabled, 'endpoint')} disabled`,
}
/** The numbers of changes and of due deliveries from which something is wrong. */
const MANY_BEHIND = 1_000
const MANY_DUE = 1_000
type Validator = ItemOf<typeof validators.listValidators>

const COLUMNS: readonly Column<Validator>[] = [
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Version', cell: ({ version }) => version ?? 'before 1.0.0' },
  {
    title: 'Ready',
    cell: ({ ready }) => <DotBadge color={ready ? 'teal' : 'red'}>{ready ? 'Ready' : 'Not ready'}</DotBadge>,
  },
  { title: 'Behind by', cell: ({ behindBy }) => (behindBy === null ? 'still loading' : counted(behindBy, 'change')) },
  { title: 'Last seen', cell: ({ seenAt }) => <When at={seenAt} /> },
  { title: 'Started', cell: ({ startedAt }) => <When at={startedAt} /> },
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
  const versions = [...new Set(list.map(({ version }) => version ?? 'before 1.0.0'))]
  if (!data) return null
  const { database, webhooks } = data
  return (
    <dl className="figures card">
      <Figure
        term="Validators"
        value={`${ready} of ${list.length}`}
        hint={
          versions.length === 1
            ? `ready, version ${versions[0] ?? ''} on all`
            : `ready, versions ${new Intl.ListFormat('en').format(versions)}`
        }
        isGood={ready > 0 && ready === list.length && versions.length === 1}
      />
      <Figure
        term="Behind by"
        value={behind.toLocaleString()}
        hint="changes that the slowest validator has not applied"
        isGood={behind < MANY_BEHIND}
      />
      <Figure
        term="Postgres"
        value={`${Math.ceil(database.bytes / BYTES_PER_MIB).toLocaleString()} MiB`}
        hint={`version ${database.version}`}
        isGood
      />
      <Figure
        term="Webhooks"
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
    <Screen title="Health">
      {!list.isPending && <Figures list={list.items} />}
      <ListTable
        list={list}
        columns={COLUMNS}
        empty="No validator has reported to Postgres in the last five seconds."
        label="Validators"
      />
    </Screen>
  )
}
