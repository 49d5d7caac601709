/** The organization: its name and plan, the time zone of its days, its color in the portal, and its limits. */

import { organizations } from '@keyward/contract'
import { Select, TextInput } from '@mantine/core'

import { call } from '../api/client.ts'
import { useCall, useRead } from '../api/hooks.ts'
import { useMay } from '../api/me.ts'
import { LimitBars, limitsOf } from '../parts/limits.tsx'
import { Screen } from '../parts/page-header.tsx'
import { Copyable, Part, When } from '../parts/parts.tsx'
import { ErrorState, LoadingPage } from '../parts/states.tsx'
import { text } from '../text.ts'

function ZoneField({ value }: { value: string | null }) {
  const may = useMay()
  const change = useCall(organizations.updateOwnOrganization, {
    done: 'Changed the time zone.',
    undo: () => call(organizations.updateOwnOrganization, { body: { timeZone: value } }),
  })
  return (
    <Select
      label="Time zone"
      description="A license that ends on a day ends when the day is over in this zone."
      // The list of the browser lacks aliases and UTC.
      data={[...new Set([...(value === null ? [] : [value]), 'UTC', ...Intl.supportedValuesOf('timeZone')])]}
      value={value}
      onChange={(timeZone) => change.mutate({ body: { timeZone } })}
      allowDeselect={false}
      disabled={!may('credentials.write')}
      searchable
      maw={360}
    />
  )
}

function AccentField({ value }: { value: string | null }) {
  const may = useMay()
  const change = useCall(organizations.updateOwnOrganization, {
    done: 'Changed the color.',
    undo: () => call(organizations.updateOwnOrganization, { body: { accentColor: value } }),
  })
  return (
    <TextInput
      label="Color in the portal"
      description="The color of your brand on the page that customers see, such as #1d4ed8. Texts stay readable in every color."
      key={value}
      defaultValue={value ?? ''}
      onBlur={({ currentTarget: { value: typed } }) => {
        if (typed !== (value ?? '')) change.mutate({ body: { accentColor: typed === '' ? null : typed } })
      }}
      disabled={!may('credentials.write')}
      maw={360}
    />
  )
}

export default function Settings() {
  const { data, error, refetch } = useRead(organizations.readOwnOrganization, {})
  if (error && !data) return <ErrorState error={error} retry={() => void refetch()} />
  if (!data) return <LoadingPage />
  return (
    <Screen title="Settings">
      <div className="column">
        <section className="card summary" aria-label="Organization">
          <dl className="kv">
            <dt>Name</dt>
            <dd>
              <bdi>{data.name}</bdi>
            </dd>
            <dt>Plan</dt>
            <dd>{text.plans[data.plan]}</dd>
            <dt>Id</dt>
            <dd>
              <Copyable value={data.id} />
            </dd>
            <dt>Created</dt>
            <dd>
              <When at={data.createdAt} />
            </dd>
          </dl>
        </section>
        <ZoneField value={data.timeZone} />
        <AccentField value={data.accentColor} />
        <Part title="Limits">
          <LimitBars limits={limitsOf(data)} />
        </Part>
      </div>
    </Screen>
  )
}
