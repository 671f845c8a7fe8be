/** Of an address; undefined where it is none that HTTP can reach. */
export function hostOf(address: string): string | undefined {
  try {
    const { protocol, hostname } = new URL(address)
    return protocol === 'http:' || protocol === 'https:' ? hostname : undefined
  } catch {
    return undefined
  }
}
