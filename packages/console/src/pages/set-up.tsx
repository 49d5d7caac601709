/** The steps from an empty organization to the first valid check. They are shown until all are done, or the person hides them. */

import { licenses } from '@keyward/contract'
import { activity } from '@keyward/contract/management/activity'
import { members } from '@keyward/contract/management/members'
import { products } from '@keyward/contract/management/products'
import { passkeys } from '@keyward/contract/management/sign-in'
import { Button, Progress } from '@mantine/core'
import { useState } from 'react'
import { Link } from 'wouter'

import { useRead } from '../api/hooks.ts'
import { useMay, useSignedIn } from '../api/me.ts'
import { offersPasskeys } from '../api/passkeys.ts'
import { Step } from '../parts/step.tsx'

const t = {
  steps: {
    passkey: {
      title: 'Add a passkey to your account',
      hint: 'Sign in with your fingerprint or your device instead of a link.',
      action: 'Add a passkey',
    },
    product: { title: 'Create a product', hint: 'Each license belongs to a product.', action: 'New product' },
    license: { title: 'Issue a license', hint: 'For yourself, to test with.', action: 'New license' },
    check: {
      title: 'See the first valid check',
      hint: 'Install the client in your app. The check appears here by itself.',
      action: 'Show me how',
    },
    invite: { title: 'Invite somebody', hint: 'A colleague can help customers without you.', action: 'Invite' },
  },
}
const HIDDEN = 'keyward set-up hidden'
const REFRESH_MS = 5_000
const FIRST = { query: { limit: 1 } }

type Name = keyof typeof t.steps

/** Returns the steps that the person may do, each with whether it is done, or undefined until that is known. */
function useSteps(): { name: Name; href: string; isDone: boolean | undefined }[] {
  const may = useMay()
  const me = useSignedIn()
  const hasAccount = me.member !== null && offersPasskeys()
  const keys = useRead(passkeys.listMyPasskeys, hasAccount ? {} : null)
  const someProduct = useRead(products.listProducts, may('products.write') ? FIRST : null)
  const someLicense = useRead(licenses.listLicenses, may('licenses.write') ? FIRST : null)
  const valid = { query: { type: 'CHECK', code: 'VALID', limit: 1 } }
  const someCheck = useRead(activity.listActivity, may('licenses.write') ? valid : null, REFRESH_MS)
  const people = useRead(members.listMembers, may('credentials.write') ? { query: { limit: 2 } } : null)
  const has = (read: { data?: { data: readonly unknown[] } | undefined }, count = 1) =>
    read.data && read.data.data.length >= count
  return [
    ...(hasAccount ? [{ name: 'passkey' as const, href: '/account', isDone: has(keys) }] : []),
    ...(may('products.write') ? [{ name: 'product' as const, href: '/products?new', isDone: has(someProduct) }] : []),
    ...(may('licenses.write')
      ? [
          { name: 'license' as const, href: '/licenses/new', isDone: has(someLicense) },
          { name: 'check' as const, href: '/integrate', isDone: has(someCheck) },
        ]
      : []),
    ...(may('credentials.write') ? [{ name: 'invite' as const, href: '/team?new', isDone: has(people, 2) }] : []),
  ]
}

function Steps({ onHide }: { onHide: () => void }) {
  const steps = useSteps()
  const done = steps.filter(({ isDone }) => isDone).length
  const next = steps.find(({ isDone }) => isDone === false)
  if (!next || steps.some(({ isDone }) => isDone === undefined)) return null
  return (
    <section className="card" aria-label="Set up">
      <div className="card-head">
        <h2>Set up</h2>
        <span className="faint">{`${done} of ${steps.length} done`}</span>
        <Button variant="subtle" color="gray" size="xs" className="card-action" onClick={onHide}>
          Hide
        </Button>
      </div>
      <Progress value={(100 * done) / steps.length} color="teal" size={4} radius={0} aria-label="Set up" />
      <ol className="flow set-up">
        {steps.map(({ name, href, isDone }) => {
          const { title, hint, action } = t.steps[name]
          return (
            <Step
              key={name}
              title={title}
              state={isDone ? 'done' : 'open'}
              action={
                !isDone && (
                  <Button component={Link} href={href} size="xs" variant={name === next.name ? 'filled' : 'default'}>
                    {action}
                  </Button>
                )
              }
            >
              <p className="sub">{hint}</p>
            </Step>
          )
        })}
      </ol>
    </section>
  )
}

export function SetUp() {
  const [isHidden, setIsHidden] = useState(() => localStorage.getItem(HIDDEN) !== null)
  if (isHidden) return null
  const hide = () => {
    localStorage.setItem(HIDDEN, 'true')
    setIsHidden(true)
  }
  return <Steps onHide={hide} />
}
