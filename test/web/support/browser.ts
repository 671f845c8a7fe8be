import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, onTestFinished, type TestContext } from 'vitest'

const PATIENCE_MS = 20_000

let browser: Browser | undefined

/** Call it once in each file: connects to the browser, and leaves it at the end. */
export function useBrowser(): void {
  beforeAll(async () => {
    const { endpoint } = inject('browser')
    if (endpoint !== '') browser = await chromium.connect(endpoint)
  })
  afterAll(() => browser?.close())
}

export function skipWithoutBrowser({ skip }: Pick<TestContext, 'skip'>): void {
  const { missing } = inject('browser')
  skip(missing !== '', missing)
}

/** Windows of one person: what goes wrong in them fails the test. */
export class Visitor {
  readonly context: BrowserContext
  /** Errors of pages, their console and the content policy, but those that are expected. */
  readonly troubles: string[] = []
  private readonly expected: RegExp[] = []

  constructor(context: BrowserContext) {
    this.context = context
  }

  /** Troubles that belong to the test, such as a server that is gone. */
  expects(...expected: readonly RegExp[]): void {
    this.expected.push(...expected)
  }

  note(trouble: string): void {
    if (!this.expected.some((one) => one.test(trouble))) this.troubles.push(trouble)
  }

  async open(url: string): Promise<Page> {
    const page = await this.context.newPage()
    page.setDefaultTimeout(PATIENCE_MS)
    page.on('pageerror', (error) => this.note(`page error: ${error.message}`))
    page.on('console', (message) => {
      if (message.type() === 'error') this.note(`console: ${message.text()} ${message.location().url}`)
    })
    page.on('dialog', (dialog) => {
      this.note(`dialog: ${dialog.message()}`)
      dialog.dismiss().catch(() => undefined)
    })
    await page.goto(url)
    return page
  }
}

/** A new person with a browser of his own: nothing is kept from tests before. */
export async function visitor(options: BrowserContextOptions = {}): Promise<Visitor> {
  if (browser === undefined) throw new Error('Call useBrowser() in the file.')
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options })
  const made = new Visitor(context)
  await context.exposeFunction('noteViolation', (text: string) => made.note(`content policy: ${text}`))
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      const { violatedDirective, blockedURI, sourceFile, lineNumber } = event as SecurityPolicyViolationEvent
      const note = (globalThis as unknown as { noteViolation: (text: string) => void }).noteViolation
      note(`${violatedDirective} ${blockedURI} ${sourceFile}:${lineNumber}`)
    })
  })
  onTestFinished(async () => {
    await context.close()
    expect(made.troubles).toEqual([])
  })
  return made
}
