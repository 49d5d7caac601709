import { licenses, machines } from '@keyward/contract'
import { activity } from '@keyward/contract/management/activity'
import { auditLog } from '@keyward/contract/management/audit'
import { Tabs } from '@mantine/core'

import { useList, useRead } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { useName } from '../../api/names.ts'
import { useRemembered } from '../../api/recent.ts'
import { Screen } from '../../parts/page-header.tsx'
import { CopyIcon, KeyText, Part, StatusBadge, TextLink } from '../../parts/parts.tsx'
import { ErrorState, LoadingPage } from '../../parts/states.tsx'
import { useUrlFilters } from '../../parts/url.ts'
import { ActivityTable } from '../activity-table.tsx'
import { ChangesTable } from '../audit.tsx'
import { RulesOf } from '../rules/rules-of.tsx'
import { Actions } from './actions.tsx'
import { MachinesTable } from './machines-table.tsx'
import { RefusalBanner, useRefusals } from './refusals.tsx'
import { CustomerCard, SummaryCard, termText } from './summary.tsx'

/** The interval at which activity and machines are read again, because checks change them. */
const LIVE_MS = 5_000
const LATEST = 5
const TABS = { tab: null }

function TabCount({ value }: { value: number }) {
  return <span className="faint">{value.toLocaleString()}</span>
}

/** Lists the changes of a license that the audit log still contains. */
function Changes({ id }: { id: string }) {
  const list = useList(auditLog.listAuditLog, { query: { resourceId: id } })
  return <ChangesTable list={list} empty="No change of this license is stored." />
}

export default function License({ id }: { id: string }) {
  const may = useMay()
  const params = { id }
  const read = useRead(licenses.readLicense, { params })
  const entries = useList(activity.listLicenseActivity, { params }, LIVE_MS)
  const holders = useList(machines.listMachines, { params }, LIVE_MS)
  const refusals = useRefusals(id, holders.items, LIVE_MS)
  const [{ tab }, setTab] = useUrlFilters(TABS)
  const customer = useName(read.data?.customerId ?? null)
  const product = useName(read.data?.productId ?? null)
  useRemembered(`/licenses/${id}`, 'License', read.data?.key)
  if (read.error && !read.data) return <ErrorState error={read.error} retry={() => void read.refetch()} />
  if (!read.data) return <LoadingPage />
  const one = read.data
  const [refusal] = refusals
  return (
    <Screen
      title={customer === '' ? one.key : `${one.key} · ${customer}`}
      heading={<KeyText value={one.key} />}
      back={{ href: '/licenses', label: 'Licenses' }}
      status={
        <>
          <CopyIcon value={one.key} label="Copy the key" />
          <StatusBadge status={one.status} />
        </>
      }
      meta={[
        <TextLink key="product" href={`/products/${one.productId}`}>
          {product}
        </TextLink>,
        <TextLink key="customer" href={`/customers/${one.customerId}`}>
          <bdi>{customer}</bdi>
        </TextLink>,
        termText(one),
      ]}
      actions={<Actions license={one} />}
    >
      {refusal && <RefusalBanner license={one} refusal={refusal} holders={holders.items} />}
      <div className="two-columns">
        <Tabs value={tab ?? 'machines'} onChange={(value) => setTab({ tab: value === 'machines' ? null : value })}>
          <Tabs.List aria-label="Views of the license" mb="md">
            <Tabs.Tab value="machines" rightSection={<TabCount value={one.machines.used} />}>
              Machines
            </Tabs.Tab>
            <Tabs.Tab value="activity">Activity</Tabs.Tab>
            {may('audit.read') && <Tabs.Tab value="changes">Changes</Tabs.Tab>}
          </Tabs.List>
          <Tabs.Panel value="machines">
            <div className="column">
              <MachinesTable license={one} list={holders} refusals={refusals} />
              <Part
                title="Latest checks"
                action={<TextLink href={`/licenses/${id}?tab=activity`}>All activity</TextLink>}
              >
                <ActivityTable
                  list={{ ...entries, items: entries.items.slice(0, LATEST), hasMore: false }}
                  empty="No activity yet."
                />
              </Part>
              <RulesOf scope="LICENSE" id={id} />
            </div>
          </Tabs.Panel>
          <Tabs.Panel value="activity">
            <ActivityTable list={entries} empty="No activity yet." />
          </Tabs.Panel>
          {tab === 'changes' && may('audit.read') && (
            <Tabs.Panel value="changes">
              <Changes id={id} />
            </Tabs.Panel>
          )}
        </Tabs>
        <div className="column">
          <SummaryCard license={one} holders={holders.items} isRefused={refusal !== undefined} />
          {may('customers.read') && <CustomerCard id={one.customerId} />}
        </div>
      </div>
    </Screen>
  )
}
