// One Chromium for all files of the project `browser`, from npm: it needs neither root nor packages of the system.

import type { TestProject } from 'vitest/node'
import { ARGS, missingBrowser, unpackBrowser } from './chromium.mjs'

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the browser listens; empty where there is none, with the reason. */
    readonly browser: { readonly endpoint: string; readonly missing: string }
  }
}

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const missing = missingBrowser()
  if (missing !== '') {
    project.provide('browser', { endpoint: '', missing })
    return undefined
  }
  const { chromium } = await import('playwright-core')
  const server = await chromium.launchServer({ executablePath: await unpackBrowser(), args: ARGS })
  project.provide('browser', { endpoint: server.wsEndpoint(), missing })
  return () => server.close()
}
