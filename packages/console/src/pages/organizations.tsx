/** The operator's view of the organizations: their state, their use, and the actions on them. */

import { ALL_PERMISSIONS, organizations, type Organization, plan, type Plan } from '@keyward/contract'
import { members } from '@keyward/contract/management/members'
import { Button, Menu, Select, Stack, Text, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { IconPlus } from '@tabler/icons-react'
import { type FormEvent, useState } from 'react'

import { call } from '../api/client.ts'
import { useEdit } from '../api/edit.ts'
import { useCall, useChange, useList, useRead } from '../api/hooks.ts'
import { Confirm } from '../parts/confirm.tsx'
import { useFields } from '../parts/fields.ts'
import { fieldErrors, FormWindow } from '../parts/form.tsx'
import { Screen } from '../parts/page-header.tsx'
import { Copyable, DotBadge, Facts, MoreMenu, When } from '../parts/parts.tsx'
import { ErrorMessage } from '../parts/states.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { Window } from '../parts/window.tsx'
import { text } from '../text.ts'
const PLANS = plan.options

interface Secrets {
  managementToken?: string | undefined
  apiKey?: string | undefined
}

/** Invites the first member of an organization with a management token of the organization. */
function FirstOwner({ token }: { token: string }) {
  const { values, text: field } = useFields({ email: '' })
  const invite = useChange(
    async () => {
      const body = { ...values, permissions: [...ALL_PERMISSIONS] }
      return call(members.createMember, { body }, { waits: false, token })
    },
    { quiet: true },
  )
  const path = invite.data?.invitation?.path
  const submit = (event: FormEvent) => {
    event.preventDefault()
    invite.mutate(undefined)
  }
  if (path !== undefined)
    return (
      <Stack gap="xs">
        <Text size="sm">{text.invited}</Text>
        <Copyable value={`${window.location.origin}${path}`} />
      </Stack>
    )
  const errors = fieldErrors(invite.error)
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="xs">
        <TextInput
          label="E-mail of the first owner"
          description="The owner has every permission and invites the colleagues."
          type="email"
          {...field('email', errors)}
          data-autofocus
        />
        {invite.error && errors['email'] === undefined && <ErrorMessage error={invite.error} />}
        <Button type="submit" loading={invite.isPending}>
          Create the invitation
        </Button>
      </Stack>
    </form>
  )
}

function SecretsWindow({ secrets, onClose }: { secrets: Secrets; onClose: () => void }) {
  const { managementToken, apiKey } = secrets
  return (
    <Window onClose={onClose} title="Created the organization." centered size="lg">
      <Stack>
        {managementToken !== undefined && <FirstOwner token={managementToken} />}
        <Text size="sm" c="dimmed">
          For programs of the vendor. The secrets are not shown again.
        </Text>
        <Facts
          facts={{
            ...(managementToken !== undefined && { 'Management token': <Copyable value={managementToken} /> }),
            ...(apiKey !== undefined && { 'API key': <Copyable value={apiKey} /> }),
          }}
          most={1}
        />
      </Stack>
    </Window>
  )
}

function PlanField({ value, onChange }: { value: Plan; onChange: (plan: Plan) => void }) {
  return (
    <Select
      label="Plan"
      data={PLANS.map((one) => ({ value: one, label: text.plans[one] }))}
      value={value}
      onChange={(chosen) => onChange(PLANS.find((one) => one === chosen) ?? value)}
      allowDeselect={false}
    />
  )
}

function State({ organization: { suspendedAt } }: { organization: Organization }) {
  return suspendedAt === null ? <DotBadge color="teal">Active</DotBadge> : <DotBadge color="red">Suspended</DotBadge>
}

function Use({ id, quota }: { id: string; quota: 'licenses' | 'members' }) {
  const { data } = useRead(organizations.readOrganization, { params: { id } })
  return data?.quotas[quota]?.used?.toLocaleString() ?? ''
}

function EditPlan({ organization: one, onClose }: { organization: Organization; onClose: () => void }) {
  const [chosen, setChosen] = useState<Plan>(one.plan)
  const saving = useEdit(organizations.updateOrganization, one, { done: 'Changed the organization.' })
  return (
    <FormWindow
      title={`Change the plan: ${one.name}`}
      action="Save"
      onClose={onClose}
      onSubmit={() => saving.mutateAsync({ plan: chosen })}
    >
      {() => <PlanField value={chosen} onChange={setChosen} />}
    </FormWindow>
  )
}

function CreateWindow({ onClose, onCreated }: { onClose: () => void; onCreated: (secrets: Secrets) => void }) {
  const { values, change, text: field } = useFields<{ name: string; plan: Plan }>({ name: '', plan: 'FREE' })
  const create = useCall(organizations.createOrganization, { onDone: onCreated, quiet: true })
  return (
    <FormWindow
      title="New organization"
      action="New organization"
      onClose={onClose}
      onSubmit={() => create.mutateAsync({ body: values })}
    >
      {(errors) => (
        <>
          <TextInput label="Name" {...field('name', errors)} required data-autofocus />
          <PlanField value={values.plan} onChange={(chosen) => change({ plan: chosen })} />
        </>
      )}
    </FormWindow>
  )
}

type Opened = 'plan' | 'suspend' | 'recover'

/** The menu of the actions on one organization. Only the action that changes its state is offered. */
function Actions({
  organization: one,
  onSecrets,
}: {
  organization: Organization
  onSecrets: (secrets: Secrets) => void
}) {
  const { id, name } = one
  const params = { id }
  const [opened, setOpened] = useState<Opened | null>(null)
  const isSuspended = one.suspendedAt !== null
  const suspend = useCall(organizations.suspendOrganization, {
    done: `Suspended ${name}.`,
    undo: () => call(organizations.reinstateOrganization, { params }),
  })
  const reinstate = useCall(organizations.reinstateOrganization, {
    done: `Reinstated ${name}.`,
    undo: () => call(organizations.suspendOrganization, { params }),
  })
  const recover = useCall(organizations.createRecoveryToken, {
    onDone: ({ secret }) => onSecrets({ managementToken: secret }),
  })
  const close = () => setOpened(null)
  return (
    <>
      <MoreMenu label={`Actions on ${name}`}>
        <Menu.Item onClick={() => setOpened('plan')}>Change the plan</Menu.Item>
        <Menu.Item onClick={() => setOpened('recover')}>Recovery token</Menu.Item>
        <Menu.Divider />
        {isSuspended ? (
          <Menu.Item onClick={() => reinstate.mutate({ params })}>Reinstate</Menu.Item>
        ) : (
          <Menu.Item color="red" onClick={() => setOpened('suspend')}>
            Suspend
          </Menu.Item>
        )}
      </MoreMenu>
      {opened === 'plan' && <EditPlan organization={one} onClose={close} />}
      {opened === 'suspend' && (
        <Confirm
          label="Suspend"
          title="Suspend this organization?"
          object={name}
          consequence="Its people and programs can no longer manage anything. Checks of its licenses continue as before."
          onConfirm={() => suspend.mutateAsync({ params })}
          onClose={close}
        />
      )}
      {opened === 'recover' && (
        <Confirm
          label="Recovery token"
          title="Create a token for this organization?"
          object={name}
          consequence="The token has every permission. It is for a vendor that has lost its own tokens. The audit log of the vendor records it."
          isDangerous={false}
          onConfirm={() => recover.mutateAsync({ params, body: {} })}
          onClose={close}
        />
      )}
    </>
  )
}

export default function Organizations() {
  const list = useList(organizations.listOrganizations, {})
  const [isCreating, creating] = useDisclosure(false)
  const [secrets, setSecrets] = useState<Secrets | null>(null)
  const columns: readonly Column<Organization>[] = [
    { title: 'Name', cell: (one) => <bdi className="name">{one.name}</bdi> },
    { title: 'State', cell: (one) => <State organization={one} /> },
    { title: 'Plan', cell: (one) => text.plans[one.plan] },
    { title: 'Licenses', cell: ({ id }) => <Use id={id} quota="licenses" />, isNumber: true },
    { title: 'Members', cell: ({ id }) => <Use id={id} quota="members" />, isNumber: true },
    { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} />, isMinor: true },
    { title: text.actions, cell: (one) => <Actions organization={one} onSecrets={setSecrets} /> },
  ]
  const open = (
    <Button onClick={creating.open} leftSection={<IconPlus size={16} />}>
      New organization
    </Button>
  )
  return (
    <Screen title="Organizations" actions={open}>
      <ListTable
        list={list}
        columns={columns}
        empty={<p>No organizations yet. Create one for each vendor.</p>}
        label="Organizations"
      />
      {isCreating && <CreateWindow onClose={creating.close} onCreated={setSecrets} />}
      {secrets && <SecretsWindow secrets={secrets} onClose={() => setSecrets(null)} />}
    </Screen>
  )
}
