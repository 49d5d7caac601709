/** The events of the last 30 days, with filters in the URL. A row opens the event as endpoints receive it. */

import { actor } from '@keyward/contract'
import { type Event, events } from '@keyward/contract/management/events'
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
import { text } from '../../text.ts'

const t = text.events
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
    <Window onClose={onClose} title={<span className="mono">{one.type}</span>} size="xl" aria-label={t.detail}>
      <Stack gap="sm">
        <Copyable value={one.id} />
        <Text size="sm">{t.body}</Text>
        <Code block className="snippet response" tabIndex={0}>
          {JSON.stringify(one, null, 2)}
        </Code>
      </Stack>
    </Window>
  )
}

export default function Events() {
  const [filters, setFilters, clear] = useUrlFilters(FILTERS)
  const [{ event: openId }, setOpen] = useUrlFilters({ event: null })
  const list = useList(events.listEvents, { query: filters })
  const columns: readonly Column<Event>[] = [
    {
      title: t.type,
      cell: ({ id, type }) => (
        <Anchor component="button" size="sm" aria-label={t.open(type)} onClick={() => setOpen({ event: id })}>
          <span className="mono event-type">{type}</span>
        </Anchor>
      ),
    },
    { title: t.resource, cell: (one) => <Resource of={one} /> },
    {
      title: t.who,
      cell: ({ data }) => {
        const by = shown.safeParse(data).data?.actor
        return by === undefined ? '' : actorName(by)
      },
    },
    { title: t.at, cell: ({ timestamp }) => <When at={timestamp} /> },
  ]
  const open = list.items.find(({ id }) => id === openId)
  return (
    <Screen title={t.title} actions={<TextLink href="/webhooks">{text.webhooks.title}</TextLink>}>
      <Text c="dimmed">{t.intro}</Text>
      <FilterBar onClear={clear}>
        <ChoiceFilter label={t.group} names={t.groups} value={filters.type} onChange={(type) => setFilters({ type })} />
      </FilterBar>
      <ListTable list={list} columns={columns} label={t.title} empty={clear ? t.emptyFiltered : t.empty} />
      {open && <EventWindow of={open} onClose={() => setOpen({ event: null })} />}
    </Screen>
  )
}
