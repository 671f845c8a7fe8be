/** A property of what a provider threw or made, which may be anything. */
export function field(from: unknown, key: string): unknown {
  if (typeof from !== 'object' || from === null) return undefined
  try {
    return Reflect.get(from, key)
  } catch {
    return undefined
  }
}
