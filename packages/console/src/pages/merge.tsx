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
import { countedSoFar } from '../text.ts'

function nameOf({ name, email }: Customer): string {
  return name === null ? email : `${name} (${email})`
}

function Preview({ gone, kept }: { gone: Customer; kept: Customer }) {
  const licenses = useList(allLicenses.listLicenses, { query: { customerId: gone.id } })
  const rules = useList(accessRules.listAccessRules, { query: { type: 'CUSTOMER', value: gone.id } })
  if (licenses.isPending || rules.isPending) return <Waiting />
  return (
    <Card withBorder component="section" aria-label="What will happen" role="status">
      <Stack gap="sm">
        <Title order={2} size="h4">
          What will happen
        </Title>
        <ErrorMessage error={licenses.error ?? rules.error} />
        <List spacing="xs">
          <List.Item>{`To the remaining customer: ${countedSoFar(licenses.items.length, licenses.hasMore, 'license')}. The keys and machines stay as they are.`}</List.Item>
          <List.Item>{`To the remaining customer: ${countedSoFar(rules.items.length, rules.hasMore, 'access rule')} for this customer.`}</List.Item>
          {gone.externalId !== null && (
            <List.Item>
              {kept.externalId === null
                ? `The remaining customer gets the external id ${gone.externalId}.`
                : `The external id ${gone.externalId} is deleted.`}
            </List.Item>
          )}
          <List.Item>{`${nameOf(gone)} will be deleted, with its e-mail address, name and metadata.`}</List.Item>
        </List>
        <Alert color="orange" icon={<IconAlertTriangle size={18} />} py="xs">
          A merge cannot be undone.
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
    done: 'Merged the customers.',
    quiet: true,
    onDone: (remaining) => navigate(`/customers/${remaining.id}`),
  })
  if (gone.error) return <ErrorMessage error={gone.error} />
  if (!gone.data) return <Waiting />
  const isSame = into === id
  return (
    <Screen title={`Merge customers: ${gone.data.name ?? gone.data.email}`}>
      <Stack maw={640}>
        <SearchField
          kind="customer"
          label="The customer that remains"
          description="Search by e-mail address, name or external id."
          value={into}
          onChange={setInto}
          error={isSame ? 'Choose another customer than this one.' : undefined}
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
            {kept.data && !isSame ? `Merge into ${kept.data.name ?? kept.data.email}` : 'Merge into another'}
          </Button>
          <Button variant="default" component={Link} href={`/customers/${id}`}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </Screen>
  )
}
