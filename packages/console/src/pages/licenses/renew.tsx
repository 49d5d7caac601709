import { type License, licenses } from '@keyward/contract'
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'

import { call } from '../../api/client.ts'
import { useCall } from '../../api/hooks.ts'
import { InputError } from '../../api/input.ts'
import { DateField } from '../../parts/date-field.tsx'
import { endOf, lastDayOf, lastDayText, usualEnds } from '../../parts/days.ts'
import { FormWindow } from '../../parts/form.tsx'
import { text } from '../../text.ts'

const t = text.license

/** Returns why the license cannot be renewed until the end of the day, or undefined. */
function problemOf(day: string, endsAt: string | null): string | undefined {
  const end = Date.parse(endOf(day))
  if (Number.isNaN(end)) return text.days.choose
  if (end <= Date.now()) return text.days.past
  return endsAt !== null && end < Date.parse(endsAt) ? t.endsLater(lastDayText(endsAt)) : undefined
}

/** A button that opens the window for a later end of a license. */
export function Renew({ license: { id, key, policy }, size }: { license: License; size?: string }) {
  const [opened, { open, close }] = useDisclosure(false)
  const { expiresAt } = policy
  const [day, setDay] = useState(() => usualEnds(expiresAt).year)
  const params = { id }
  const renew = useCall(licenses.renewLicense, {
    done: t.renewed,
    undo: () => call(licenses.updateLicense, { params, body: { policy: { expiresAt } } }),
    quiet: true,
  })
  const min = lastDayOf(
    new Date(Math.max(Date.now() + 1, expiresAt === null ? 0 : Date.parse(expiresAt))).toISOString(),
  )
  const submit = async () => {
    const problem = problemOf(day, expiresAt)
    if (problem !== undefined) throw new InputError({ expiresAt: problem })
    await renew.mutateAsync({ params, body: { expiresAt: endOf(day) } })
  }
  return (
    <>
      <Button variant="default" onClick={open} {...(size !== undefined && { size })}>
        {t.renew}
      </Button>
      <FormWindow title={t.renewTitle(key)} action={t.renew} opened={opened} onClose={close} onSubmit={submit}>
        {(errors) => (
          <DateField
            label={text.licenses.expires}
            value={day}
            onChange={setDay}
            error={errors['expiresAt']}
            endsAt={expiresAt}
            min={min}
          />
        )}
      </FormWindow>
    </>
  )
}
