/** Evaluates a hypothetical check, and shows which rule or license status decides it. */

import { accessRule, type AccessRule, evaluation, license } from '@keyward/contract'
import { Alert, Badge, Button, Card, Group, SimpleGrid, Stack, Table, Text, TextInput, Title } from '@mantine/core'
import { type FormEvent, useEffect, useState } from 'react'
import type { z } from 'zod'

import { call } from '../api/client.ts'
import { useChange, useRead } from '../api/hooks.ts'
import { fieldErrors } from '../parts/form.tsx'
import { CodeBadge, ConfirmButton, ErrorMessage, Screen } from '../parts/parts.tsx'
import { useUrlParameters } from '../parts/url.ts'
import { text } from '../text.ts'

const t = text.why
type Evaluation = z.infer<typeof evaluation>

function RuleRow({ rule }: { rule: AccessRule }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Badge variant="dot" color={rule.kind === 'EXCLUSION' ? 'teal' : 'red'}>
          {text.kinds[rule.kind]}
        </Badge>
      </Table.Td>
      <Table.Td>{text.types[rule.type]}</Table.Td>
      <Table.Td className="mono">{rule.value}</Table.Td>
      <Table.Td>{text.scopes[rule.scope]}</Table.Td>
      <Table.Td>{rule.note}</Table.Td>
    </Table.Tr>
  )
}

function Rules({ rules, label }: { rules: readonly AccessRule[]; label: string }) {
  return (
    <Table.ScrollContainer minWidth={360} type="native" tabIndex={0} role="group" aria-label={label}>
      <Table aria-label={label}>
        <Table.Tbody>
          {rules.map((rule) => (
            <RuleRow key={rule.id} rule={rule} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}

function Decision({
  decision: { code, decidedBy, matched, monitored, restricted },
  onLetThrough,
}: {
  decision: Evaluation
  onLetThrough: (() => Promise<unknown>) | null
}) {
  const restriction = restricted && t.restricted(restricted.types.map((type) => text.types[type]).join(', '))
  const explanation =
    restriction ?? (decidedBy?.kind === 'EXCLUSION' && code === 'VALID' ? t.excluded : t.explain[code])
  return (
    <Card withBorder component="section" aria-label={t.result} role="status">
      <Stack>
        <Group>
          <Title order={2} size="h4">
            {t.result}
          </Title>
          <CodeBadge code={code} />
        </Group>
        <Alert color={code === 'VALID' ? 'teal' : 'red'}>{explanation}</Alert>
        {decidedBy && (
          <>
            <Text fw={600}>{t.decided}</Text>
            <Rules rules={[decidedBy]} label={t.decided} />
          </>
        )}
        <Text fw={600}>{matched.length === 0 ? t.noneMatched : t.matched}</Text>
        {matched.length > 0 && <Rules rules={matched} label={t.matched} />}
        {monitored.length > 0 && (
          <>
            <Text fw={600}>{t.monitored}</Text>
            <Rules rules={monitored} label={t.monitored} />
          </>
        )}
        {onLetThrough && (
          <Group>
            <ConfirmButton
              label={t.letThrough}
              title={t.letThroughTitle}
              consequence={t.letThroughHint}
              color="teal"
              onConfirm={onLetThrough}
            />
          </Group>
        )}
      </Stack>
    </Card>
  )
}

export default function Why() {
  const given = useUrlParameters()
  const licenseId = given.get('license')
  const read = useRead(licenseId === null ? null : `/licenses/${licenseId}`, license)
  const [licenseKey, setLicenseKey] = useState('')
  const [machineId, setMachineId] = useState(given.get('machine') ?? '')
  const [ip, setIp] = useState('')
  const [country, setCountry] = useState('')
  const key = read.data?.key
  useEffect(() => {
    if (key !== undefined) setLicenseKey(key)
  }, [key])

  const decide = useChange(
    () => {
      const check = { licenseKey: licenseKey.trim(), machineId, ip: ip.trim(), country: country.trim() }
      const body = Object.fromEntries(Object.entries(check).filter(([, value]) => value !== ''))
      return call({ method: 'POST', path: '/access-rules/evaluate', body }, evaluation)
    },
    { quiet: true },
  )
  const letThrough = useChange(
    () => {
      const body = { kind: 'EXCLUSION', type: 'HWID', value: machineId, scope: 'LICENSE', scopeId: read.data?.id }
      return call({ method: 'POST', path: '/access-rules', body, waits: true }, accessRule)
    },
    { done: t.letThroughDone, onDone: () => decide.mutate(undefined) },
  )
  const submit = (event: FormEvent) => {
    event.preventDefault()
    decide.mutate(undefined)
  }
  const errors = fieldErrors(decide.error)
  const canLetThrough =
    decide.data && decide.data.code !== 'VALID' && read.data && machineId !== '' && licenseKey.trim() === read.data.key
  return (
    <Screen title={t.title}>
      <Text c="dimmed">{t.intro}</Text>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <form onSubmit={submit} noValidate>
          <Stack>
            <TextInput
              label={t.licenseKey}
              value={licenseKey}
              onChange={(event) => setLicenseKey(event.currentTarget.value)}
              error={errors['licenseKey'] ?? errors['licenseId']}
              required
            />
            <TextInput
              label={t.machineId}
              value={machineId}
              onChange={(event) => setMachineId(event.currentTarget.value)}
              error={errors['machineId']}
            />
            <TextInput
              label={t.address}
              description={text.rules.valueHints.IP}
              value={ip}
              onChange={(event) => setIp(event.currentTarget.value)}
              error={errors['ip']}
            />
            <TextInput
              label={t.country}
              description={t.countryHint}
              value={country}
              onChange={(event) => setCountry(event.currentTarget.value)}
              error={errors['country']}
            />
            <Button type="submit" loading={decide.isPending}>
              {t.decide}
            </Button>
            {Object.keys(errors).length === 0 && <ErrorMessage error={decide.error} />}
          </Stack>
        </form>
        {decide.data && (
          <Decision
            decision={decide.data}
            onLetThrough={canLetThrough ? () => letThrough.mutateAsync(undefined) : null}
          />
        )}
      </SimpleGrid>
    </Screen>
  )
}
