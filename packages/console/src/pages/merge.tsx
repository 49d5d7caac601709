/** Merges one customer into another. Shows what moves and what is deleted before the person confirms. */

import { accessRules, type Customer, customers, licenses as allLicenses } from '@keyward/contract'
import { Alert, Button, Card, Group, List, Stack, Title } from '@mantine/core'
import { IconAlertTriangle } from '@tabler/icons-react'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'

import { useCall, useList, useRead } from '../api/hooks.ts'
import { Screen } from '../parts/page-header.tsx'
import { Waiting } from '../parts/parts.tsx'
import { SearchField } from '../parts/search-field.tsx'
import { ErrorMessage } from '../parts/states.tsx'
import { text } from '../text.ts'

const t = text.customers

function nameOf({ name, email }: Customer): string {
  return name === null ? email : `${name} (${email})`
}

function Preview({ gone, kept }: { gone: Customer; kept: Customer }) {
  const licenses = useList(allLicenses.listLicenses, { query: { customerId: gone.id } })
  const rules = useList(accessRules.listAccessRules, { query: { type: 'CUSTOMER', value: gone.id } })
  if (licenses.isPending || rules.isPending) return <Waiting />
  return (
    <Card withBorder component="section" aria-label={t.mergeMoves} role="status">
      <Stack gap="sm">
        <Title order={2} size="h4">
          {t.mergeMoves}
        </Title>
        <ErrorMessage error={licenses.error ?? rules.error} />
        <List spacing="xs">
          <List.Item>{t.movesLicenses(t.countLicenses(licenses.items.length, licenses.hasMore))}</List.Item>
          <List.Item>{t.movesRules(t.countRules(rules.items.length, rules.hasMore))}</List.Item>
          {gone.externalId !== null && (
            <List.Item>
              {kept.externalId === null ? t.takesExternalId(gone.externalId) : t.losesExternalId(gone.externalId)}
            </List.Item>
          )}
          <List.Item>{t.deletesCustomer(nameOf(gone))}</List.Item>
        </List>
        <Alert color="orange" icon={<IconAlertTriangle size={18} />} py="xs">
          {t.finalMerge}
        </Alert>
      </Stack>
    </Card>
  )
}

export default function Merge({ id }: { id: string }) {
  const [, navigate] = useLocation()
  const gone = useRead(customers.readCustomer, { params: { id } })
  const [into, setInto] = useState<string | null>(null)
  const kept = useRead(customers.readCustomer, into === null ? null : { params: { id: into } })
  const merge = useCall(customers.mergeCustomer, {
    done: t.merged,
    quiet: true,
    onDone: (remaining) => navigate(`/customers/${remaining.id}`),
  })
  if (gone.error) return <ErrorMessage error={gone.error} />
  if (!gone.data) return <Waiting />
  const isSame = into === id
  return (
    <Screen title={`${t.mergeTitle}: ${gone.data.name ?? gone.data.email}`}>
      <Stack maw={640}>
        <SearchField
          kind="customer"
          label={t.mergeInto}
          description={t.mergeIntoHint}
          value={into}
          onChange={setInto}
          error={isSame ? t.sameCustomer : undefined}
        />
        {kept.data && !isSame && <Preview gone={gone.data} kept={kept.data} />}
        <ErrorMessage error={merge.error} />
        <Group>
          <Button
            color="red"
            disabled={!kept.data || isSame}
            loading={merge.isPending}
            onClick={() => into !== null && merge.mutate({ params: { id }, body: { into } })}
          >
            {kept.data && !isSame ? t.confirmMerge(kept.data.name ?? kept.data.email) : t.merge}
          </Button>
          <Button variant="default" component={Link} href={`/customers/${id}`}>
            {text.cancel}
          </Button>
        </Group>
      </Stack>
    </Screen>
  )
}
