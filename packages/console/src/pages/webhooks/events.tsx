/** The events of the last 30 days, with filters in the URL. A row opens the event as endpoints receive it. */

import { actor } from '@keyward/contract'
import { type Event, events } from '@keyward/contract/management/events'
import { lines } from '@keyward/contract/text'
import { Anchor, Code, Stack, Text } from '@mantine/core'
import { z } from 'zod'

import { useList } from '../../api/hooks.ts'
import { actorName } from '../../parts/actor.ts'
import { ChoiceFilter, FilterBar } from '../../parts/filters.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Copyable, TextLink, When } from '../../parts/parts.tsx'
import { ResourceLink } from '../../parts/resource-link.tsx'
import { nameAmong } from '../../parts/resource-name.ts'
import { type Column, ListTable } from '../../parts/table.tsx'
import { useUrlFilters } from '../../parts/url.ts'
import { Window } from '../../parts/window.tsx'

const t = {
  groups: {
    'license.*': 'Licenses',
    'machine.*': 'Machines',
    'access_rule.*': 'Access rules',
    'access_rules.*': 'Imports of rules',
    'access_rule_set.*': 'Sets of rules',
    'customer.*': 'Customers',
    'product.*': 'Products',
    'api_key.*': 'API keys',
    'token.*': 'Tokens',
    'member.*': 'Members',
    'signing_key.*': 'Signing keys',
    'webhook_endpoint.*': 'Webhooks',
    'quota.*': 'Quotas',
  },
}
const FILTERS = { type: null, resourceId: null }
/** The members of `data` that most events have. */
const shown = z.object({ actor: actor.optional(), resource: z.looseObject({ id: z.string().optional() }).optional() })

function Resource({ of: { type, data } }: { of: Event }) {
  const { resource } = shown.safeParse(data).data ?? {}
  if (resource?.id === undefined) return ''
  const name = nameAmong(resource) ?? resource.id.slice(0, 8)
  return <ResourceLink type={type.split('.')[0] ?? ''} id={resource.id} name={name} />
}

function EventWindow({ of: one, onClose }: { of: Event; onClose: () => void }) {
  return (
    <Window onClose={onClose} title={<span className="mono">{one.type}</span>} size="xl" aria-label="Event">
      <Stack gap="sm">
        <Copyable value={one.id} />
        <Text size="sm">The event as endpoints receive it</Text>
        <Code block className="snippet response" tabIndex={0}>
          {lines(JSON.stringify(one, null, 2))}
        </Code>
      </Stack>
    </Window>
  )
}

export default function Events() {
  const filters = useUrlFilters(FILTERS)
  const [query, , clear] = filters
  const [{ event: openId }, setOpen] = useUrlFilters({ event: null })
  const list = useList(events.listEvents, { query })
  const columns: readonly Column<Event>[] = [
    {
      title: 'Type',
      cell: ({ id, type }) => (
        <Anchor
          component="button"
          size="sm"
          aria-label={`Open the event ${type}`}
          onClick={() => setOpen({ event: id })}
        >
          <span className="mono event-type">{type}</span>
        </Anchor>
      ),
    },
    { title: 'On', cell: (one) => <Resource of={one} /> },
    {
      title: 'By',
      cell: ({ data }) => {
        const by = shown.safeParse(data).data?.actor
        return by === undefined ? '' : actorName(by)
      },
    },
    { title: 'At', cell: ({ timestamp }) => <When at={timestamp} /> },
  ]
  const open = list.items.find(({ id }) => id === openId)
  return (
    <Screen title="Events" actions={<TextLink href="/webhooks">Webhooks</TextLink>}>
      <Text c="dimmed">Everything that happened in the last 30 days. Endpoints receive the events of their types.</Text>
      <FilterBar onClear={clear}>
        <ChoiceFilter filters={filters} name="type" label="About" names={t.groups} />
      </FilterBar>
      <ListTable
        list={list}
        columns={columns}
        label="Events"
        empty={clear ? 'No event matches these filters.' : 'No events in the last 30 days.'}
      />
      {open && <EventWindow of={open} onClose={() => setOpen({ event: null })} />}
    </Screen>
  )
}
