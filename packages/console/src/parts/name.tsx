import { useName } from '../api/names.ts'
import { TextLink } from './parts.tsx'

/** The name of a resource, as a link if `href` is given. Shows `fallback` until the name has been read. */
export function Name({ id, href, fallback = '' }: { id: string; href?: string; fallback?: string }) {
  const name = useName(id) || fallback
  return href === undefined ? name : <TextLink href={href}>{name}</TextLink>
}

/** Shows the beginning of the id until the key has been read, and for a deleted license. */
export function LicenseKey({ id }: { id: string }) {
  return (
    <TextLink href={`/licenses/${id}`}>
      <span className="mono">
        <Name id={id} fallback={id.slice(0, 8)} />
      </span>
    </TextLink>
  )
}
