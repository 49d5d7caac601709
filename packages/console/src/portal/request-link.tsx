import { portal } from '@keyward/contract/management/portal'
import { type FormEvent, useState } from 'react'

import { ApiError, call, UnreachableError } from '../api/client.ts'

/** The form with which a customer requests a link by mail. The answer does not depend on whether the address belongs to a customer. */
export function RequestLink({ organizationId }: { organizationId: string }) {
  const [email, setEmail] = useState('')
  const [state, setState] = useState<'open' | 'busy' | 'sent'>('open')
  const [problem, setProblem] = useState<string | null>(null)

  const submit = async () => {
    setState('busy')
    setProblem(null)
    try {
      await call(portal.requestPortalLink, { body: { organizationId, email: email.trim() } })
      setState('sent')
    } catch (error) {
      setState('open')
      if (error instanceof ApiError) setProblem(error.message)
      else if (error instanceof UnreachableError) setProblem('The connection is lost. Check it, and try again.')
      else throw error
    }
  }
  const onSubmit = (event: FormEvent) => {
    event.preventDefault()
    void submit()
  }
  return (
    <form className="pt-form" onSubmit={onSubmit}>
      <label className="pt-field">
        E-mail address
        <input
          type="email"
          autoComplete="email"
          required
          value={email}
          onChange={(event) => {
            setEmail(event.currentTarget.value)
            setState('open')
          }}
        />
      </label>
      <button type="submit" className="pt-button" data-primary disabled={state !== 'open'}>
        Send a link
      </button>
      {problem !== null && <p role="alert">{problem}</p>}
      <p role="status" className={state === 'sent' ? 'pt-said' : 'vh'}>
        {state === 'sent' &&
          'If a customer has this address, a mail with a link is on its way. The link works for 15 minutes.'}
      </p>
    </form>
  )
}
