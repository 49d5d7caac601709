/** Evaluates a hypothetical check, and explains the decision step by step. */

import { accessRules, licenses, machines } from '@keyward/contract'
import { dryRuns } from '@keyward/contract/dry-run'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button, Card, CopyButton, Group, SimpleGrid, Stack, Text, TextInput, Title } from '@mantine/core'
import { type FormEvent, useEffect, useState } from 'react'
import { Link } from 'wouter'

import { call } from '../../api/client.ts'
import { useCall, useChange, useRead } from '../../api/hooks.ts'
import { useName } from '../../api/names.ts'
import { fieldErrors } from '../../parts/form.tsx'
import { CodeBadge, ConfirmButton, ErrorMessage, Screen } from '../../parts/parts.tsx'
import { useUrlParameters } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { StepsList } from './steps-list.tsx'
import { type Decision, stepsOf } from './steps.ts'

const t = text.why
/** Returns whether the machine holds a slot of the license. */
async function readHoldsSlot(licenseId: string, machineId: string): Promise<boolean> {
  if (machineId === '') return false
  const { data } = await call(machines.findMachines, { query: { machineId, limit: 100 } })
  return data.some((one) => one.licenseId === licenseId)
}

interface Check {
  licenseKey: string
  machineId: string
  ip: string
  country: string
}

/** Evaluates a check, and reads the license with its key. */
async function decideCheck(check: Check): Promise<Decision> {
  const { licenseKey, machineId } = check
  const body = Object.fromEntries(Object.entries(check).filter(([, value]) => value !== ''))
  const evaluated = await call(dryRuns.evaluateAccessRules, { body })
  const isUnknown = evaluated.code === 'NOT_FOUND'
  const query = { key: licenseKey, limit: 1 }
  const found = isUnknown ? null : (await call(licenses.listLicenses, { query })).data[0]
  const holdsSlot = found ? await readHoldsSlot(found.id, machineId) : false
  return { evaluation: evaluated, license: found ?? null, holdsSlot, hasMachineId: machineId !== '' }
}

function DecisionCard({
  decision,
  onLetThrough,
}: {
  decision: Decision
  onLetThrough: (() => Promise<unknown>) | null
}) {
  const { evaluation: evaluated, license: one } = decision
  const { code, decidedBy, restricted } = evaluated
  const product = useName(one?.productId ?? null)
  const customer = useName(one?.customerId ?? null)
  const steps = stepsOf(decision, { product, customer })
  const isExcluded = decidedBy?.kind === 'EXCLUSION' && code === 'VALID'
  const explanation = restricted ? t.unrestricted : isExcluded ? t.excluded : t.explain[code]
  const aloud = [
    `${text.codes[code]}. ${explanation}`,
    ...steps.map(({ title, sentence }, index) => `${index + 1}. ${title}: ${sentence}`),
  ].join('\n')
  return (
    <Card withBorder component="section" aria-label={t.result} role="status">
      <Stack>
        <div>
          <CodeBadge code={code} />
          <Title order={2} size="h4" mt={6}>
            {explanation}
          </Title>
        </div>
        <StepsList steps={steps} />
        <Group gap="xs">
          {onLetThrough && (
            <ConfirmButton
              label={t.letThrough}
              title={t.letThroughTitle}
              consequence={t.letThroughHint}
              color="teal"
              onConfirm={onLetThrough}
            />
          )}
          {one && (
            <Button variant="default" component={Link} href={`/licenses/${one.id}`}>
              {t.openLicense}
            </Button>
          )}
          <CopyButton value={aloud}>
            {({ copied, copy }) => (
              <Button variant="default" onClick={copy}>
                {copied ? text.copied : t.copyAloud}
              </Button>
            )}
          </CopyButton>
        </Group>
      </Stack>
    </Card>
  )
}

export default function Why({ me }: { me: Me }) {
  const given = useUrlParameters()
  const licenseId = given.get('license')
  const read = useRead(licenses.readLicense, licenseId === null ? null : { params: { id: licenseId } })
  const [licenseKey, setLicenseKey] = useState('')
  const [machineId, setMachineId] = useState(given.get('machine') ?? '')
  const [ip, setIp] = useState('')
  const [country, setCountry] = useState('')
  const key = read.data?.key
  useEffect(() => {
    if (key !== undefined) setLicenseKey(key)
  }, [key])

  const decide = useChange(
    () =>
      decideCheck({ licenseKey: licenseKey.trim(), machineId, ip: ip.trim(), country: country.trim().toUpperCase() }),
    { quiet: true },
  )
  const decided = decide.data
  const letThrough = useCall(accessRules.createAccessRule, {
    done: t.letThroughDone,
    onDone: () => decide.mutate(undefined),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    decide.mutate(undefined)
  }
  const errors = fieldErrors(decide.error)
  const canLetThrough =
    me.permissions.includes('licenses.write') &&
    decided?.license &&
    decided.evaluation.code !== 'VALID' &&
    machineId !== '' &&
    licenseKey.trim() === decided.license.key
  const scopeId = canLetThrough ? decided.license?.id : undefined
  const exclusion = { kind: 'EXCLUSION', type: 'HWID', value: machineId, scope: 'LICENSE', scopeId } as const
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
            <Button type="submit" loading={decide.isPending} disabled={licenseId !== null && read.isPending}>
              {t.decide}
            </Button>
            {Object.keys(errors).length === 0 && <ErrorMessage error={decide.error} />}
          </Stack>
        </form>
        {decided && (
          <DecisionCard
            decision={decided}
            onLetThrough={scopeId === undefined ? null : () => letThrough.mutateAsync({ body: exclusion })}
          />
        )}
      </SimpleGrid>
    </Screen>
  )
}
