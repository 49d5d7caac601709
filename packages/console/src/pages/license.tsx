/** One license: its terms, its machines, its activity, and the actions on it. */

import { customer, license, type License as LicenseType, machine } from '@keyward/contract'
import { activityEntry } from '@keyward/contract/management/activity'
import { product } from '@keyward/contract/management/products'
import { Anchor, Button, Card, Group, SimpleGrid, Stack, Text, TextInput, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import { Link } from 'wouter'
import type { z } from 'zod'

import { call, callForText, callWithoutResponse } from '../api/client.ts'
import { useChange, useList, useRead } from '../api/hooks.ts'
import { ActivityTable } from '../parts/activity-table.tsx'
import { FormWindow } from '../parts/form.tsx'
import { ConfirmButton, Copyable, ErrorMessage, Fact, Screen, StatusBadge, Waiting, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

const t = text.license
type Machine = z.infer<typeof machine>

/** Downloads the content as a text file. */
function save(name: string, content: string): void {
  const url = URL.createObjectURL(new Blob([content], { type: 'text/plain' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}

function Renew({ id }: { id: string }) {
  const [opened, { open, close }] = useDisclosure(false)
  const [day, setDay] = useState('')
  const renew = useChange(
    () => {
      const body = { expiresAt: `${day}T00:00:00Z` }
      return call({ method: 'POST', path: `/licenses/${id}/renew`, body, waits: true }, license)
    },
    { done: t.renewed, quiet: true },
  )
  return (
    <>
      <Button variant="default" onClick={open}>
        {t.renew}
      </Button>
      <FormWindow
        title={t.renew}
        action={t.renew}
        opened={opened}
        onClose={close}
        onSubmit={() => renew.mutateAsync(undefined)}
      >
        {(errors) => (
          <TextInput
            label={text.licenses.expires}
            description={text.licenses.expiresHint}
            type="date"
            value={day}
            onChange={(event) => setDay(event.currentTarget.value)}
            error={errors['expiresAt']}
            required
          />
        )}
      </FormWindow>
    </>
  )
}

function Actions({ license: { id, status, policy } }: { license: LicenseType }) {
  const act = useChange((action: string) =>
    call({ method: 'POST', path: `/licenses/${id}/${action}`, waits: true }, license),
  )
  const download = useChange(async () =>
    save(`license-${id}.lic`, await callForText({ method: 'GET', path: `/licenses/${id}/file` })),
  )
  const isOver = status === 'revoked'
  return (
    <Group gap="xs">
      <Button component={Link} href={`/why?license=${id}`} variant="default">
        {t.why}
      </Button>
      {status === 'active' && (
        <Button variant="default" onClick={() => download.mutate(undefined)} loading={download.isPending}>
          {t.download}
        </Button>
      )}
      {!isOver && policy.type !== 'PERPETUAL' && <Renew id={id} />}
      {status === 'suspended' && (
        <Button onClick={() => act.mutate('reinstate')} loading={act.isPending}>
          {t.reinstate}
        </Button>
      )}
      {!isOver && (
        <ConfirmButton
          label={t.replaceKey}
          title={t.replaceTitle}
          consequence={t.replaceHint}
          color="orange"
          onConfirm={() => act.mutateAsync('replace-key')}
          isPending={act.isPending}
        />
      )}
      {(status === 'active' || status === 'expired') && (
        <ConfirmButton
          label={t.suspend}
          title={t.suspendTitle}
          consequence={t.suspendHint}
          color="orange"
          onConfirm={() => act.mutateAsync('suspend')}
          isPending={act.isPending}
        />
      )}
      {!isOver && (
        <ConfirmButton
          label={t.revoke}
          title={t.revokeTitle}
          consequence={t.revokeHint}
          onConfirm={() => act.mutateAsync('revoke')}
          isPending={act.isPending}
        />
      )}
    </Group>
  )
}

function Machines({ licenseId }: { licenseId: string }) {
  const list = useList(`/licenses/${licenseId}/machines`, machine)
  const release = useChange(
    (id: string) =>
      callWithoutResponse({ method: 'DELETE', path: `/licenses/${licenseId}/machines/${id}`, waits: true }),
    { done: t.released },
  )
  const columns: readonly Column<Machine>[] = [
    { title: t.machineId, cell: ({ machineId }) => <Copyable value={machineId} /> },
    { title: t.hostname, cell: ({ hostname }) => hostname ?? '' },
    { title: t.lastSeen, cell: ({ lastSeenAt }) => <When at={lastSeenAt} /> },
    {
      title: text.actions,
      cell: ({ id }) => (
        <ConfirmButton
          size="xs"
          label={t.release}
          title={t.releaseTitle}
          consequence={t.releaseHint}
          color="orange"
          onConfirm={() => release.mutateAsync(id)}
          isPending={release.isPending}
        />
      ),
    },
  ]
  return <ListTable list={list} columns={columns} empty={t.noMachines} label={t.machines} />
}

/** Returns the text for a license without an expiry: the term in days that its first use starts, or "never". */
function termOf({ policy: { durationDays } }: LicenseType): string {
  return durationDays === null ? text.never : text.licenses.daysFromFirstUse(durationDays)
}

function Summary({ license: one }: { license: LicenseType }) {
  const owner = useRead(`/customers/${one.customerId}`, customer)
  const forProduct = useRead(`/products/${one.productId}`, product)
  return (
    <Card withBorder>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} component="dl" m={0}>
        <Fact term={text.licenses.key}>
          <Copyable value={one.key} />
        </Fact>
        <Fact term={text.licenses.status}>
          <StatusBadge status={one.status} />
        </Fact>
        <Fact term={text.licenses.product}>{forProduct.data?.name ?? one.productId}</Fact>
        <Fact term={text.licenses.customer}>
          <Anchor component={Link} href={`/customers/${one.customerId}`} size="sm">
            {owner.data?.email ?? one.customerId}
          </Anchor>
        </Fact>
        <Fact term={text.licenses.machines}>
          {one.machines.used} / {one.machines.max ?? text.unlimited}
        </Fact>
        <Fact term={text.licenses.expires}>
          <When at={one.policy.expiresAt} never={termOf(one)} />
        </Fact>
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

export default function License({ id }: { id: string }) {
  const read = useRead(`/licenses/${id}`, license)
  const activity = useList(`/licenses/${id}/activity`, activityEntry)
  if (read.error) return <ErrorMessage error={read.error} />
  if (!read.data) return <Waiting />
  return (
    <Screen title={t.title} actions={<Actions license={read.data} />}>
      <Summary license={read.data} />
      <Stack gap="sm" component="section" aria-label={t.machines}>
        <Title order={2} size="h4">
          {t.machines}
        </Title>
        <Machines licenseId={id} />
      </Stack>
      <Stack gap="sm" component="section" aria-label={t.activity}>
        <Title order={2} size="h4">
          {t.activity}
        </Title>
        <ActivityTable list={activity} empty={<Text c="dimmed">{t.noActivity}</Text>} />
      </Stack>
    </Screen>
  )
}
