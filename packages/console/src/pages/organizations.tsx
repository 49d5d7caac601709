import { type Organization, organizations, plan, type Plan } from '@keyward/contract'
import { Button, Group, Select, Stack, Text, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'

import { useCall, useList } from '../api/hooks.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { FormWindow } from '../parts/form.tsx'
import { Screen } from '../parts/page-header.tsx'
import { Copyable, Fact, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { Window } from '../parts/window.tsx'
import { text } from '../text.ts'

const t = text.operator
const PLANS = plan.options

interface Secrets {
  managementToken?: string | undefined
  apiKey?: string | undefined
}

function SecretsWindow({ secrets, onClose }: { secrets: Secrets | null; onClose: () => void }) {
  if (secrets === null) return null
  return (
    <Window onClose={onClose} title={t.secrets} centered>
      <Stack component="dl">
        {secrets.managementToken !== undefined && (
          <Fact term={t.managementToken}>
            <Copyable value={secrets.managementToken} />
          </Fact>
        )}
        {secrets.apiKey !== undefined && (
          <Fact term={t.apiKey}>
            <Copyable value={secrets.apiKey} />
          </Fact>
        )}
      </Stack>
    </Window>
  )
}

function PlanField({ value, onChange }: { value: Plan; onChange: (plan: Plan) => void }) {
  return (
    <Select
      aria-label={t.plan}
      data={[...PLANS]}
      value={value}
      onChange={(chosen) => onChange(PLANS.find((one) => one === chosen) ?? value)}
      allowDeselect={false}
      w={130}
    />
  )
}

export default function Organizations() {
  const list = useList(organizations.listOrganizations, {})
  const [isCreating, creating] = useDisclosure(false)
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState<Plan>('FREE')
  const [secrets, setSecrets] = useState<Secrets | null>(null)
  const create = useCall(organizations.createOrganization, { done: t.created, onDone: setSecrets, quiet: true })
  const change = useCall(organizations.updateOrganization, { done: t.changed })
  const suspend = useCall(organizations.suspendOrganization, { done: t.changed })
  const reinstate = useCall(organizations.reinstateOrganization, { done: t.changed })
  const recover = useCall(organizations.createRecoveryToken, {
    onDone: ({ secret }) => setSecrets({ managementToken: secret }),
  })
  const columns: readonly Column<Organization>[] = [
    { title: t.nameOf, cell: (one) => one.name },
    {
      title: t.plan,
      cell: (one) => (
        <PlanField
          value={one.plan}
          onChange={(next) => change.mutate({ params: { id: one.id }, body: { plan: next } })}
        />
      ),
    },
    { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: ({ id }) => (
        <Group gap="xs" wrap="nowrap">
          <ConfirmButton
            size="xs"
            label={t.suspend}
            title={t.suspendTitle}
            consequence={t.suspendHint}
            onConfirm={() => suspend.mutateAsync({ params: { id } })}
          />
          <Button size="xs" variant="default" onClick={() => reinstate.mutate({ params: { id } })}>
            {t.reinstate}
          </Button>
          <ConfirmButton
            size="xs"
            label={t.recovery}
            title={t.recoveryTitle}
            consequence={t.recoveryHint}
            isDangerous={false}
            onConfirm={() => recover.mutateAsync({ params: { id }, body: {} })}
          />
        </Group>
      ),
    },
  ]
  return (
    <Screen title={t.organizations} actions={<Button onClick={creating.open}>{t.new}</Button>}>
      <ListTable list={list} columns={columns} empty={<Text c="dimmed">{t.empty}</Text>} label={t.organizations} />
      <FormWindow
        title={t.new}
        action={t.new}
        opened={isCreating}
        onClose={creating.close}
        onSubmit={() => create.mutateAsync({ body: { name, plan: chosen } })}
      >
        {(errors) => (
          <>
            <TextInput
              label={t.nameOf}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={errors['name']}
              required
            />
            <PlanField value={chosen} onChange={setChosen} />
          </>
        )}
      </FormWindow>
      <SecretsWindow secrets={secrets} onClose={() => setSecrets(null)} />
    </Screen>
  )
}
