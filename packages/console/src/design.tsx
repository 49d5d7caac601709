/** Every shared component in every state, without the API. Only a development build contains this page. */

import {
  ActionIcon,
  Alert,
  Badge,
  Button,
  Checkbox,
  Menu,
  SegmentedControl,
  Select,
  Tabs,
  TextInput,
} from '@mantine/core'
import { IconDots, IconPlus } from '@tabler/icons-react'
import { useState } from 'react'

import { ApiError, UnreachableError } from './api/client.ts'
import { showDone, showError } from './notices.tsx'
import { Chart } from './parts/chart.tsx'
import { ConfirmButton } from './parts/confirm.tsx'
import { DateField } from './parts/date-field.tsx'
import { ChoiceFilter, FilterBar, TextFilter } from './parts/filters.tsx'
import { FormWindow } from './parts/form.tsx'
import { Mark } from './parts/mark.tsx'
import { Screen } from './parts/page-header.tsx'
import { Copyable, DotBadge, KeyText, Part, StatusBadge, Waiting } from './parts/parts.tsx'
import { SidePanel } from './parts/side-panel.tsx'
import { Slots } from './parts/slots.tsx'
import { ErrorMessage, ErrorState, LoadingRows, State } from './parts/states.tsx'
import { type Column, ListTable, type ListState } from './parts/table.tsx'

interface Row {
  id: string
  name: string
  used: number
}

const ROWS: readonly Row[] = [
  { id: 'PGSQ-XTC2-GUHD-PTRM', name: 'Luca Moretti', used: 2 },
  { id: 'GAKR-USFW-E4SR-MVZH', name: 'Funkhaus Nord', used: 1 },
  { id: 'H4LN-9KXT-QW2C-VB7D', name: 'A name that is much longer than the others, \u202Egnp.exe', used: 0 },
]
const LIST: ListState<Row> = {
  items: ROWS,
  error: null,
  isPending: false,
  hasMore: true,
  isLoadingMore: false,
  loadMore: () => undefined,
  retry: () => undefined,
}
const COLUMNS: readonly Column<Row>[] = [
  { title: 'Key', cell: ({ id }) => <KeyText value={id} /> },
  { title: 'Customer', cell: ({ name }) => <bdi>{name}</bdi> },
  {
    title: 'Status',
    cell: ({ used }) => <StatusBadge status={used === 0 ? 'suspended' : 'active'} />,
    sortKey: 'status',
  },
  { title: 'Machines', cell: ({ used }) => <Slots used={used} max={2} isRefused={used === 2} /> },
]
const REFUSED = new ApiError({
  type: 'urn:keyward:problem:in-use',
  title: 'The resource still has licenses.',
  status: 409,
  detail: 'The product has 3 licenses.',
  code: 'IN_USE',
  requestId: 'f3b1c2',
  instance: '/products/1',
})
const FORBIDDEN = new ApiError({
  ...REFUSED.problem,
  status: 403,
  code: 'FORBIDDEN',
  detail: 'The permission licenses.read is missing.',
})
const HOUR_MS = 3_600_000
const FIRST_MS = Date.UTC(2026, 10, 23)
const BUCKETS = Array.from({ length: 24 }, (_, hour) => ({
  start: new Date(FIRST_MS + hour * HOUR_MS),
  end: new Date(FIRST_MS + (hour + 1) * HOUR_MS),
  counts: {
    VALID: 40 + ((hour * 37) % 60),
    TOO_MANY_MACHINES: hour % 5,
    BLACKLISTED: hour % 3,
    EXPIRED: hour % 4,
    NOT_FOUND: hour % 2,
  },
}))
const nothing = () => undefined

function Controls() {
  return (
    <Part title="Controls">
      <div className="column">
        <div className="decision-actions">
          <Button>Primary</Button>
          <Button variant="default">Default</Button>
          <Button color="red">Danger</Button>
          <Button disabled>Disabled</Button>
          <Button loading>Loading</Button>
          <Button size="xs" variant="default" leftSection={<IconPlus size={14} />}>
            Small
          </Button>
          <Menu>
            <Menu.Target>
              <ActionIcon variant="default" size="var(--h-control)" aria-label="More actions">
                <IconDots size={16} />
              </ActionIcon>
            </Menu.Target>
            <Menu.Dropdown>
              <Menu.Item>Edit</Menu.Item>
              <Menu.Item color="red">Delete</Menu.Item>
            </Menu.Dropdown>
          </Menu>
        </div>
        <TextInput label="Text" description="A description" placeholder="Empty" />
        <TextInput label="Wrong text" defaultValue="nobody" error="must be an e-mail address" />
        <Select label="Choice" data={['One', 'Two']} defaultValue="One" />
        <Checkbox label="A box" defaultChecked />
        <SegmentedControl data={['24 hours', '7 days', '30 days']} aria-label="Period" />
        <div className="decision-actions">
          {(['teal', 'orange', 'red', 'blue', 'gray'] as const).map((color) => (
            <DotBadge key={color} color={color}>
              {color}
            </DotBadge>
          ))}
          <Badge color="gray">Standard</Badge>
          <span className="tag">presets = 40</span>
          <Mark size="large" />
        </div>
        <Copyable value="kwk_0123456789" />
      </div>
    </Part>
  )
}

function States() {
  return (
    <>
      <Part title="Empty">
        <State>
          <p>No products yet.</p>
          <Button>New product</Button>
        </State>
      </Part>
      <Part title="Loading">
        <LoadingRows rows={3} />
        <Waiting />
      </Part>
      <Part title="Refused">
        <ErrorState error={REFUSED} retry={nothing} />
      </Part>
      <Part title="No connection">
        <ErrorState error={new UnreachableError('The service did not respond.')} retry={nothing} />
      </Part>
      <Part title="No permission">
        <ErrorState error={FORBIDDEN} retry={nothing} />
      </Part>
      <Part title="Messages">
        <ErrorMessage error={REFUSED} />
        <Alert color="orange" title="A warning">
          The range contains your own address.
        </Alert>
        <Alert color="blue">A note</Alert>
        <div className="decision-actions">
          <Button variant="default" onClick={() => showDone('Suspended PGSQ-XTC2.', async () => undefined)}>
            Show an undo
          </Button>
          <Button variant="default" onClick={() => showError(REFUSED)}>
            Show an error
          </Button>
        </div>
      </Part>
    </>
  )
}

/** The windows and the panel, which open from buttons. */
function Layers() {
  const [opened, setOpened] = useState<'form' | 'panel' | null>(null)
  const [day, setDay] = useState('2027-12-31')
  const close = () => setOpened(null)
  return (
    <Part title="Windows and panel">
      <div className="decision-actions">
        <ConfirmButton
          label="Revoke"
          title="Revoke this license permanently?"
          object={<KeyText value="PGSQ-XTC2-GUHD-PTRM" />}
          consequence="All checks are rejected."
          typed="PTRM"
          onConfirm={async () => undefined}
        />
        <Button variant="default" onClick={() => setOpened('form')}>
          Open a form
        </Button>
        <Button variant="default" onClick={() => setOpened('panel')}>
          Open the panel
        </Button>
      </div>
      {opened === 'form' && (
        <FormWindow title="Renew" action="Renew" onClose={close} onSubmit={async () => undefined}>
          {() => <DateField label="Expires" value={day} onChange={setDay} endsAt="2027-01-01T00:00:00.000Z" />}
        </FormWindow>
      )}
      {opened === 'panel' && (
        <SidePanel title="Check" onClose={close}>
          The list stays beside the panel.
        </SidePanel>
      )}
    </Part>
  )
}

export function Design() {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set([ROWS[0]?.id ?? '']))
  return (
    <main className="main">
      <Screen
        title="Components"
        back={{ href: '/', label: 'Overview' }}
        status={<StatusBadge status="active" />}
        meta={['Aria Mastering', 'Luca Moretti', 'Subscription until 23 Apr 2027']}
        actions={<Button>Primary</Button>}
      >
        <FilterBar onClear={nothing}>
          <TextFilter label="Find" placeholder="Key, customer, machine" value={null} onChange={nothing} />
          <ChoiceFilter
            filters={[{ status: 'active' }, nothing, null]}
            name="status"
            label="Status"
            names={{ active: 'Active' }}
          />
        </FilterBar>
        <Tabs defaultValue="all">
          <Tabs.List aria-label="Views">
            <Tabs.Tab value="all">All</Tabs.Tab>
            <Tabs.Tab value="some">Expiring</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="all" pt="md">
            <ListTable
              list={LIST}
              columns={COLUMNS}
              href={() => '/'}
              empty=""
              label="Licenses"
              sorting={{ by: 'status', order: 'asc', onSort: nothing }}
              selection={{ ids, onChange: setIds, nameOf: ({ id }) => id }}
            />
          </Tabs.Panel>
          <Tabs.Panel value="some">Nothing</Tabs.Panel>
        </Tabs>
        <div className="two-columns">
          <Controls />
          <div className="column">
            <Part title="Facts">
              <dl className="kv">
                <dt>Terms</dt>
                <dd>Subscription</dd>
                <dt>Machines</dt>
                <dd>2, held until freed</dd>
              </dl>
            </Part>
            <Layers />
          </div>
        </div>
        <Part title="Chart">
          <Chart buckets={BUCKETS} isDaily={false} onOpen={nothing} />
        </Part>
        <States />
      </Screen>
    </main>
  )
}
