import { type License as LicenseType, licenseFiles, licenses, machines } from '@keyward/contract'
import { activity } from '@keyward/contract/management/activity'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button, Group, Text, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'

import { call } from '../../api/client.ts'
import { type ItemOf, useCall, useChange, useList, useRead } from '../../api/hooks.ts'
import { useRemembered } from '../../api/recent.ts'
import { save } from '../../api/save.ts'
import { ActivityTable } from '../../parts/activity-table.tsx'
import { FormWindow } from '../../parts/form.tsx'
import { ConfirmButton, Copyable, ErrorMessage, Part, Screen, TextLink, Waiting, When } from '../../parts/parts.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { text } from '../../text.ts'
import { RulesTable } from '../rules/rules-table.tsx'
import { EditTerms, Entitlements, Summary } from './summary.tsx'

const t = text.license
/** The interval at which activity and machines are read again, because checks change them. */
const LIVE_MS = 5_000
type Machine = ItemOf<typeof machines.listMachines>

function Renew({ license: { id, policy } }: { license: LicenseType }) {
  const [opened, { open, close }] = useDisclosure(false)
  const [day, setDay] = useState('')
  const params = { id }
  const renew = useCall(licenses.renewLicense, {
    done: t.renewed,
    undo: () => call(licenses.updateLicense, { params, body: { policy: { expiresAt: policy.expiresAt } } }),
    quiet: true,
  })
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
        onSubmit={() => renew.mutateAsync({ params, body: { expiresAt: `${day}T00:00:00Z` } })}
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

function Actions({ license: one, canWrite }: { license: LicenseType; canWrite: boolean }) {
  const { id, status, policy } = one
  const [, navigate] = useLocation()
  const input = { params: { id } }
  const remove = useCall(licenses.deleteLicense, { done: t.deleted, onDone: () => navigate('/licenses') })
  const replaceKey = useCall(licenses.replaceLicenseKey, { done: t.replaced })
  const revoke = useCall(licenses.revokeLicense, { done: t.revoked })
  const suspend = useCall(licenses.suspendLicense, {
    done: t.suspended,
    undo: () => call(licenses.reinstateLicense, input),
  })
  const reinstate = useCall(licenses.reinstateLicense, {
    done: t.reinstated,
    undo: () => call(licenses.suspendLicense, input),
  })
  const download = useChange(async () => save(`license-${id}.lic`, await call(licenseFiles.downloadLicenseFile, input)))
  const isOver = status === 'revoked' || !canWrite
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
      {!isOver && policy.type !== 'PERPETUAL' && <Renew license={one} />}
      {!isOver && <EditTerms license={one} />}
      {canWrite && status === 'suspended' && (
        <Button onClick={() => reinstate.mutate(input)} loading={reinstate.isPending}>
          {t.reinstate}
        </Button>
      )}
      {!isOver && (
        <ConfirmButton
          label={t.replaceKey}
          title={t.replaceTitle}
          consequence={t.replaceHint}
          color="orange"
          onConfirm={() => replaceKey.mutateAsync(input)}
          isPending={replaceKey.isPending}
        />
      )}
      {canWrite && (status === 'active' || status === 'expired') && (
        <ConfirmButton
          label={t.suspend}
          title={t.suspendTitle}
          consequence={t.suspendHint}
          color="orange"
          onConfirm={() => suspend.mutateAsync(input)}
          isPending={suspend.isPending}
        />
      )}
      {!isOver && (
        <ConfirmButton
          label={t.revoke}
          title={t.revokeTitle}
          consequence={t.revokeHint}
          onConfirm={() => revoke.mutateAsync(input)}
          isPending={revoke.isPending}
        />
      )}
      {canWrite && (
        <ConfirmButton
          label={t.delete}
          title={t.deleteTitle}
          consequence={t.deleteHint}
          onConfirm={() => remove.mutateAsync(input)}
          isPending={remove.isPending}
        />
      )}
    </Group>
  )
}

function Machines({ license: { id: licenseId, policy }, canWrite }: { license: LicenseType; canWrite: boolean }) {
  const list = useList(machines.listMachines, { params: { id: licenseId } }, LIVE_MS)
  const release = useCall(machines.removeMachine, { done: t.released })
  const columns: Column<Machine>[] = [
    { title: t.machineId, cell: ({ machineId }) => <Copyable value={machineId} /> },
    { title: t.hostname, cell: ({ hostname }) => hostname ?? '' },
    { title: t.lastSeen, cell: ({ lastSeenAt }) => <When at={lastSeenAt} /> },
  ]
  if (policy.leaseSeconds !== null)
    columns.push({ title: t.leaseEnds, cell: ({ leaseEndsAt }) => <When at={leaseEndsAt} /> })
  if (canWrite)
    columns.push({
      title: text.actions,
      cell: ({ id }) => (
        <ConfirmButton
          size="xs"
          label={t.release}
          title={t.releaseTitle}
          consequence={t.releaseHint}
          color="orange"
          onConfirm={() => release.mutateAsync({ params: { id: licenseId, machineId: id } })}
          isPending={release.isPending}
        />
      ),
    })
  return <ListTable list={list} columns={columns} empty={t.noMachines} label={t.machines} />
}

export default function License({ id, me }: { id: string; me: Me }) {
  const read = useRead(licenses.readLicense, { params: { id } })
  const entries = useList(activity.listLicenseActivity, { params: { id } }, LIVE_MS)
  useRemembered(`/licenses/${id}`, t.title, read.data?.key)
  if (read.error) return <ErrorMessage error={read.error} />
  if (!read.data) return <Waiting />
  const canWrite = me.permissions.includes('licenses.write')
  return (
    <Screen title={t.title} actions={<Actions license={read.data} canWrite={canWrite} />}>
      <Summary license={read.data} />
      <Entitlements license={read.data} canWrite={canWrite} />
      <Part title={t.machines}>
        <Machines license={read.data} canWrite={canWrite} />
      </Part>
      <Part
        title={t.rules}
        hint={t.rulesHint}
        action={
          canWrite && (
            <Button size="xs" variant="default" component={Link} href={`/rules/new?license=${id}`}>
              {t.newRule}
            </Button>
          )
        }
      >
        <RulesTable
          filters={{ scope: 'LICENSE', scopeId: id }}
          label={t.rules}
          canWrite={canWrite}
          empty={<Text c="dimmed">{t.noRules}</Text>}
        />
      </Part>
      <Part
        title={t.activity}
        action={
          me.permissions.includes('audit.read') && (
            <TextLink href={`/audit?resourceId=${id}`}>{text.audit.history}</TextLink>
          )
        }
      >
        <ActivityTable list={entries} empty={<Text c="dimmed">{t.noActivity}</Text>} />
      </Part>
    </Screen>
  )
}
