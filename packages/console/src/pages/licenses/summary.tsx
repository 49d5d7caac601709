import { customers, type License, licenses } from '@keyward/contract'
import { products } from '@keyward/contract/management/products'
import { Anchor, Button, Card, Group, SimpleGrid, Stack, Title } from '@mantine/core'
import { useState } from 'react'
import { Link } from 'wouter'

import { call } from '../../api/client.ts'
import { useCall, useRead } from '../../api/hooks.ts'
import {
  EntitlementList,
  type EntitlementRow,
  EntitlementsField,
  entitlementsOf,
  hasProblem,
  rowsOf,
} from '../../parts/entitlements-field.tsx'
import { FormWindow } from '../../parts/form.tsx'
import { Copyable, Fact, StatusBadge, TextLink, When } from '../../parts/parts.tsx'
import { text } from '../../text.ts'
import { bodyOf, formerPolicy, type Policy, PolicyFields, policyOf } from './policy-fields.tsx'

const t = text.license

/** Returns the text for a license without an expiry: a term that has not started, or "never". */
export function termOf({ policy: { durationDays } }: License): string {
  return durationDays === null ? text.never : text.licenses.daysFromFirstUse(durationDays)
}

function slotsOf({ policy: { leaseSeconds, maxMachines } }: License): string {
  return leaseSeconds === null || maxMachines === null ? t.fixedSlots : t.floatingSlots(leaseSeconds / 60)
}

export function Summary({ license: one }: { license: License }) {
  const owner = useRead(customers.readCustomer, { params: { id: one.customerId } })
  const forProduct = useRead(products.readProduct, { params: { id: one.productId } })
  return (
    <Card withBorder>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} component="dl" m={0}>
        <Fact term={text.licenses.key}>
          <Copyable value={one.key} />
        </Fact>
        <Fact term={text.licenses.status}>
          <StatusBadge status={one.status} />
        </Fact>
        <Fact term={text.licenses.product}>
          <TextLink href={`/products/${one.productId}`}>{forProduct.data?.name ?? one.productId}</TextLink>
        </Fact>
        <Fact term={text.licenses.customer}>
          <Anchor component={Link} href={`/customers/${one.customerId}`} size="sm">
            {owner.data?.email ?? one.customerId}
          </Anchor>
        </Fact>
        <Fact term={text.licenses.terms}>{text.licenses.types[one.policy.type]}</Fact>
        <Fact term={text.licenses.expires}>
          <When at={one.policy.expiresAt} never={termOf(one)} />
        </Fact>
        <Fact term={text.licenses.machines}>
          {one.machines.used} / {one.machines.max ?? text.unlimited}
        </Fact>
        <Fact term={t.slots}>{slotsOf(one)}</Fact>
        <Fact term={text.licenses.maxReleases}>{one.policy.maxReleases ?? text.unlimited}</Fact>
        <Fact term={text.licenses.createdOn}>
          <When at={one.createdAt} />
        </Fact>
        <Fact term="Id">
          <Copyable value={one.id} />
        </Fact>
      </SimpleGrid>
    </Card>
  )
}

/** A button that opens the window for changing the terms. */
export function EditTerms({ license: one }: { license: License }) {
  const [policy, setPolicy] = useState<Policy | null>(null)
  const params = { id: one.id }
  const saving = useCall(licenses.updateLicense, {
    done: t.saved,
    undo: () => call(licenses.updateLicense, { params, body: { policy: formerPolicy(one) } }),
    quiet: true,
  })
  return (
    <>
      <Button variant="default" onClick={() => setPolicy(policyOf(one))}>
        {t.editTerms}
      </Button>
      <FormWindow
        title={t.editTerms}
        action={text.save}
        opened={policy !== null}
        onClose={() => setPolicy(null)}
        onSubmit={async () => policy && saving.mutateAsync({ params, body: { policy: bodyOf(policy, one) } })}
        size="lg"
      >
        {(errors) =>
          policy && (
            <PolicyFields value={policy} onChange={(part) => setPolicy({ ...policy, ...part })} errors={errors} />
          )
        }
      </FormWindow>
    </>
  )
}

export function Entitlements({ license: one, canWrite }: { license: License; canWrite: boolean }) {
  const { data } = useRead(products.readProduct, { params: { id: one.productId } })
  const [rows, setRows] = useState<EntitlementRow[] | null>(null)
  const defaults = data?.entitlements ?? {}
  const params = { id: one.id }
  const saving = useCall(licenses.updateLicense, {
    done: text.entitlements.saved,
    undo: () => call(licenses.updateLicense, { params, body: { entitlements: one.entitlements } }),
    quiet: true,
  })
  return (
    <Stack gap="sm" component="section" aria-label={text.entitlements.title}>
      <Group justify="space-between">
        <Title order={2} size="h4">
          {text.entitlements.title}
        </Title>
        {canWrite && (
          <Button size="xs" variant="default" onClick={() => setRows(rowsOf(one.entitlements))}>
            {text.entitlements.edit}
          </Button>
        )}
      </Group>
      <EntitlementList defaults={defaults} overrides={one.entitlements} />
      <FormWindow
        title={text.entitlements.title}
        action={text.save}
        opened={rows !== null}
        onClose={() => setRows(null)}
        onSubmit={() => saving.mutateAsync({ params, body: { entitlements: entitlementsOf(rows ?? []) } })}
        size="lg"
        isInvalid={hasProblem(rows ?? [])}
      >
        {(errors) => <EntitlementsField rows={rows ?? []} onChange={setRows} defaults={defaults} errors={errors} />}
      </FormWindow>
    </Stack>
  )
}
