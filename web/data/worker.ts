// The one place of the page that makes an address of a script. The content policy names its policy, and no other can exist.

interface UrlPolicy {
  createScriptURL(url: string): string
}

interface PolicyFactory {
  createPolicy(name: string, rules: { readonly createScriptURL: (url: string) => string }): UrlPolicy
}

const factory = (globalThis as { readonly trustedTypes?: PolicyFactory }).trustedTypes
const policy = factory?.createPolicy('legate', { createScriptURL: sameOrigin })

/** The address of a worker of ours, in a form that the browser takes for one. */
export function trustedUrl(url: string): string {
  return policy === undefined ? sameOrigin(url) : policy.createScriptURL(url)
}

function sameOrigin(url: string): string {
  const { origin, href } = new URL(url, location.href)
  if (origin !== location.origin) throw new Error('Workers come from this server only.')
  return href
}
