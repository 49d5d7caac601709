/** The name of a resource of any type, as a link to the screen of the resource if one exists. */

import { TextLink } from './parts.tsx'

/** The paths of the screens of resources, by resource type of the API. */
const SCREENS: Readonly<Record<string, (id: string) => string>> = {
  license: (id) => `/licenses/${id}`,
  customer: (id) => `/customers/${id}`,
  product: (id) => `/products/${id}`,
  template: (id) => `/templates/${id}`,
  webhook_endpoint: (id) => `/webhooks/${id}`,
}

export function ResourceLink({ type, id, name }: { type: string; id: string; name: string }) {
  const screen = SCREENS[type]
  return screen === undefined ? name : <TextLink href={screen(id)}>{name}</TextLink>
}
