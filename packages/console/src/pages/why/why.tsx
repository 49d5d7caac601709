/** Evaluates a hypothetical check, and explains the decision step by step. */

import { licenses } from '@keyward/contract'
import { Button, SimpleGrid, Stack, Text, TextInput } from '@mantine/core'
import { type FormEvent, useEffect, useState } from 'react'

import { useChange, useRead } from '../../api/hooks.ts'
import { CountryField } from '../../parts/country-field.tsx'
import { fieldErrors } from '../../parts/form.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { useUrlParameters } from '../../parts/url.ts'
import { decideCheck } from './decide.ts'
import { DecisionCard } from './decision-card.tsx'
export default function Why() {
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

  const decide = useChange(() => decideCheck({ licenseKey: licenseKey.trim(), machineId, ip: ip.trim(), country }), {
    quiet: true,
  })
  const decided = decide.data
  const submit = (event: FormEvent) => {
    event.preventDefault()
    decide.mutate(undefined)
  }
  const errors = fieldErrors(decide.error)
  return (
    <Screen title="Check">
      <Text c="dimmed">Describe a check to see what decides it. The check is not recorded and takes no slot.</Text>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <form onSubmit={submit} noValidate>
          <Stack>
            <TextInput
              label="License key"
              value={licenseKey}
              onChange={(event) => setLicenseKey(event.currentTarget.value)}
              error={errors['licenseKey'] ?? errors['licenseId']}
              required
            />
            <TextInput
              label="Machine id"
              value={machineId}
              onChange={(event) => setMachineId(event.currentTarget.value)}
              error={errors['machineId']}
            />
            <TextInput
              label="Address"
              description="An IPv4 or IPv6 address, such as 203.0.113.7."
              value={ip}
              onChange={(event) => setIp(event.currentTarget.value)}
              error={errors['ip']}
            />
            <CountryField value={country} onChange={setCountry} error={errors['country']} />
            <div>
              <Button type="submit" loading={decide.isPending} disabled={licenseId !== null && read.isPending}>
                Decide
              </Button>
            </div>
            {Object.keys(errors).length === 0 && <ErrorMessage error={decide.error} />}
          </Stack>
        </form>
        {decided && (
          <DecisionCard
            decision={decided}
            machineId={licenseKey.trim() === decided.license?.key ? machineId : ''}
            onChange={() => decide.mutate(undefined)}
          />
        )}
      </SimpleGrid>
    </Screen>
  )
}
