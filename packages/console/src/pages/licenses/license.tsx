import { licenses, machines } from '@keyward/contract'
import { activity } from '@keyward/contract/management/activity'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button, Tabs, Text } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { Link } from 'wouter'

import { useList, useRead } from '../../api/hooks.ts'
import { useName } from '../../api/names.ts'
import { useRemembered } from '../../api/recent.ts'
import { Screen } from '../../parts/page-header.tsx'
import { CopyIcon, KeyText, Part, StatusBadge, TextLink } from '../../parts/parts.tsx'
import { ErrorState, LoadingPage } from '../../parts/states.tsx'
import { useUrlFilters } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { ActivityTable } from '../activity-table.tsx'
import { RulesTable } from '../rules/rules-table.tsx'
import { Actions } from './actions.tsx'
import { MachinesTable } from './machines-table.tsx'
import { RefusalBanner, useRefusals } from './refusals.tsx'
import { CustomerCard, SummaryCard, termText } from './summary.tsx'

const t = text.license
/** The interval at which activity and machines are read again, because checks change them. */
const LIVE_MS = 5_000
const LATEST = 5
const TABS = { tab: null }

export default function License({ id, me }: { id: string; me: Me }) {
  const params = { id }
  const read = useRead(licenses.readLicense, { params })
  const entries = useList(activity.listLicenseActivity, { params }, LIVE_MS)
  const holders = useList(machines.listMachines, { params }, LIVE_MS)
  const refusals = useRefusals(id, holders.items, LIVE_MS)
  const [{ tab }, setTab] = useUrlFilters(TABS)
  const customer = useName(read.data?.customerId ?? null)
  const product = useName(read.data?.productId ?? null)
  useRemembered(`/licenses/${id}`, t.title, read.data?.key)
  if (read.error && !read.data) return <ErrorState error={read.error} retry={() => void read.refetch()} />
  if (!read.data) return <LoadingPage />
  const one = read.data
  const canWrite = me.permissions.includes('licenses.write')
  const [refusal] = refusals
  const rules = (
    <Part
      title={t.rules}
      action={
        canWrite && (
          <Button
            size="xs"
            variant="default"
            component={Link}
            href={`/rules/new?license=${id}`}
            leftSection={<IconPlus size={14} />}
          >
            {t.newRule}
          </Button>
        )
      }
    >
      <RulesTable
        filters={{ scope: 'LICENSE', scopeId: id }}
        label={t.rules}
        canWrite={canWrite}
        empty={<Text size="sm">{t.noRules}</Text>}
      />
    </Part>
  )
  return (
    <Screen
      title={customer === '' ? one.key : `${one.key} · ${customer}`}
      heading={<KeyText value={one.key} />}
      back={{ href: '/licenses', label: text.nav.licenses }}
      status={
        <>
          <CopyIcon value={one.key} label={t.copyKey} />
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
      actions={<Actions license={one} me={me} />}
    >
      {refusal && <RefusalBanner licenseId={id} refusal={refusal} holders={holders.items} canWrite={canWrite} />}
      <div className="two-columns">
        <Tabs value={tab ?? 'machines'} onChange={(value) => setTab({ tab: value === 'machines' ? null : value })}>
          <Tabs.List aria-label={t.views} mb="md">
            <Tabs.Tab value="machines">{t.machines}</Tabs.Tab>
            <Tabs.Tab value="activity">{t.activity}</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="machines">
            <div className="column">
              <MachinesTable license={one} list={holders} refusals={refusals} canWrite={canWrite} />
              <Part
                title={t.latest}
                action={<TextLink href={`/licenses/${id}?tab=activity`}>{t.allActivity}</TextLink>}
              >
                <ActivityTable
                  canWrite={canWrite}
                  list={{ ...entries, items: entries.items.slice(0, LATEST), hasMore: false }}
                  empty={<Text size="sm">{t.noActivity}</Text>}
                />
              </Part>
              {rules}
            </div>
          </Tabs.Panel>
          <Tabs.Panel value="activity">
            <ActivityTable list={entries} canWrite={canWrite} empty={<Text size="sm">{t.noActivity}</Text>} />
          </Tabs.Panel>
        </Tabs>
        <div className="column">
          <SummaryCard license={one} holders={holders.items} isRefused={refusal !== undefined} canWrite={canWrite} />
          {me.permissions.includes('customers.read') && <CustomerCard id={one.customerId} />}
        </div>
      </div>
    </Screen>
  )
}
