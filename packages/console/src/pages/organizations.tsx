/** The operator's view of the organizations: their state, their use, and the actions on them. */

import { ALL_PERMISSIONS, organizations, type Organization, plan, type Plan } from '@keyward/contract'
import { members } from '@keyward/contract/management/members'
import { ActionIcon, Button, Menu, Select, Stack, Text, TextInput } from '@mantine/core'
import { IconDots, IconPlus } from '@tabler/icons-react'
import { type FormEvent, useState } from 'react'

import { call } from '../api/client.ts'
import { useEdit } from '../api/edit.ts'
import { useCall, useChange, useList, useRead } from '../api/hooks.ts'
import { Confirm } from '../parts/confirm.tsx'
import { fieldErrors, FormWindow } from '../parts/form.tsx'
import { Screen } from '../parts/page-header.tsx'
import { Copyable, DotBadge, Fact, When } from '../parts/parts.tsx'
import { ErrorMessage } from '../parts/states.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { Window } from '../parts/window.tsx'
import { text } from '../text.ts'

const t = text.operator
const PLANS = plan.options

interface Secrets {
  managementToken?: string | undefined
  apiKey?: string | undefined
}

/** Invites the first member of an organization with a management token of the organization. */
function FirstOwner({ token }: { token: string }) {
  const [email, setEmail] = useState('')
  const invite = useChange(
    async () => {
      const body = { email, permissions: [...ALL_PERMISSIONS] }
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
        <Text size="sm">{text.team.invited}</Text>
        <Copyable value={`${window.location.origin}${path}`} />
      </Stack>
    )
  const errors = fieldErrors(invite.error)
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="xs">
        <TextInput
          label={t.owner}
          description={t.ownerHint}
          type="email"
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
          error={errors['email']}
          data-autofocus
        />
        {invite.error && errors['email'] === undefined && <ErrorMessage error={invite.error} />}
        <Button type="submit" loading={invite.isPending}>
          {t.inviteOwner}
        </Button>
      </Stack>
    </form>
  )
}

function SecretsWindow({ secrets, onClose }: { secrets: Secrets; onClose: () => void }) {
  const { managementToken, apiKey } = secrets
  return (
    <Window onClose={onClose} title={t.created} centered size="lg">
      <Stack>
        {managementToken !== undefined && <FirstOwner token={managementToken} />}
        <Text size="sm" c="dimmed">
          {t.secrets}
        </Text>
        <Stack component="dl" gap="xs" m={0}>
          {managementToken !== undefined && (
            <Fact term={t.managementToken}>
              <Copyable value={managementToken} />
            </Fact>
          )}
          {apiKey !== undefined && (
            <Fact term={t.apiKey}>
              <Copyable value={apiKey} />
            </Fact>
          )}
        </Stack>
      </Stack>
    </Window>
  )
}

function PlanField({ value, onChange }: { value: Plan; onChange: (plan: Plan) => void }) {
  return (
    <Select
      label={t.plan}
      data={PLANS.map((one) => ({ value: one, label: text.plans[one] }))}
      value={value}
      onChange={(chosen) => onChange(PLANS.find((one) => one === chosen) ?? value)}
      allowDeselect={false}
    />
  )
}

function State({ organization: { suspendedAt } }: { organization: Organization }) {
  return suspendedAt === null ? (
    <DotBadge color="teal">{t.active}</DotBadge>
  ) : (
    <DotBadge color="red">{t.suspended}</DotBadge>
  )
}

function Use({ id, quota }: { id: string; quota: 'licenses' | 'members' }) {
  const { data } = useRead(organizations.readOrganization, { params: { id } })
  return data?.quotas[quota]?.used?.toLocaleString() ?? ''
}

function EditPlan({ organization: one, onClose }: { organization: Organization; onClose: () => void }) {
  const [chosen, setChosen] = useState<Plan>(one.plan)
  const saving = useEdit(organizations.updateOrganization, one, { done: t.changed })
  return (
    <FormWindow
      title={`${t.changePlan}: ${one.name}`}
      action={text.save}
      opened
      onClose={onClose}
      onSubmit={() => saving.mutateAsync({ plan: chosen })}
    >
      {() => <PlanField value={chosen} onChange={setChosen} />}
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
    done: t.suspendedName(name),
    undo: () => call(organizations.reinstateOrganization, { params }),
  })
  const reinstate = useCall(organizations.reinstateOrganization, {
    done: t.reinstatedName(name),
    undo: () => call(organizations.suspendOrganization, { params }),
  })
  const recover = useCall(organizations.createRecoveryToken, {
    onDone: ({ secret }) => onSecrets({ managementToken: secret }),
  })
  const close = () => setOpened(null)
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={t.actionsOf(name)}>
            <IconDots size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => setOpened('plan')}>{t.changePlan}</Menu.Item>
          <Menu.Item onClick={() => setOpened('recover')}>{t.recovery}</Menu.Item>
          <Menu.Divider />
          {isSuspended ? (
            <Menu.Item onClick={() => reinstate.mutate({ params })}>{t.reinstate}</Menu.Item>
          ) : (
            <Menu.Item color="red" onClick={() => setOpened('suspend')}>
              {t.suspend}
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      {opened === 'plan' && <EditPlan organization={one} onClose={close} />}
      {opened === 'suspend' && (
        <Confirm
          label={t.suspend}
          title={t.suspendTitle}
          object={name}
          consequence={t.suspendHint}
          onConfirm={() => suspend.mutateAsync({ params })}
          isPending={suspend.isPending}
          onClose={close}
        />
      )}
      {opened === 'recover' && (
        <Confirm
          label={t.recovery}
          title={t.recoveryTitle}
          object={name}
          consequence={t.recoveryHint}
          isDangerous={false}
          onConfirm={() => recover.mutateAsync({ params, body: {} })}
          isPending={recover.isPending}
          onClose={close}
        />
      )}
    </>
  )
}

export default function Organizations() {
  const list = useList(organizations.listOrganizations, {})
  const [draft, setDraft] = useState<{ name: string; plan: Plan } | null>(null)
  const [secrets, setSecrets] = useState<Secrets | null>(null)
  const create = useCall(organizations.createOrganization, { onDone: setSecrets, quiet: true })
  const columns: readonly Column<Organization>[] = [
    { title: t.nameOf, cell: (one) => <bdi className="name">{one.name}</bdi> },
    { title: t.state, cell: (one) => <State organization={one} /> },
    { title: t.plan, cell: (one) => text.plans[one.plan] },
    { title: text.nav.licenses, cell: ({ id }) => <Use id={id} quota="licenses" />, isNumber: true },
    { title: t.members, cell: ({ id }) => <Use id={id} quota="members" />, isNumber: true },
    { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} />, isMinor: true },
    { title: text.actions, cell: (one) => <Actions organization={one} onSecrets={setSecrets} /> },
  ]
  const open = (
    <Button onClick={() => setDraft({ name: '', plan: 'FREE' })} leftSection={<IconPlus size={16} />}>
      {t.new}
    </Button>
  )
  return (
    <Screen title={t.organizations} actions={open}>
      <ListTable list={list} columns={columns} empty={<p>{t.empty}</p>} label={t.organizations} />
      {draft && (
        <FormWindow
          title={t.new}
          action={t.new}
          opened
          onClose={() => setDraft(null)}
          onSubmit={() => create.mutateAsync({ body: draft })}
        >
          {(errors) => (
            <>
              <TextInput
                label={t.nameOf}
                value={draft.name}
                onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })}
                error={errors['name']}
                required
                data-autofocus
              />
              <PlanField value={draft.plan} onChange={(chosen) => setDraft({ ...draft, plan: chosen })} />
            </>
          )}
        </FormWindow>
      )}
      {secrets && <SecretsWindow secrets={secrets} onClose={() => setSecrets(null)} />}
    </Screen>
  )
}
