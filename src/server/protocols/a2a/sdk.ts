/** The parts of `@a2a-js/sdk` that serving needs. */
export interface A2aSdk {
  readonly core: typeof import('@a2a-js/sdk')
  readonly errors: typeof import('@a2a-js/sdk/errors')
  readonly server: typeof import('@a2a-js/sdk/server')
}

/** Loads the package: with the first request, not before. */
export async function loadSdk(): Promise<A2aSdk> {
  const [core, errors, server] = await Promise.all([
    import('@a2a-js/sdk'),
    import('@a2a-js/sdk/errors'),
    import('@a2a-js/sdk/server'),
  ])
  return { core, errors, server }
}
