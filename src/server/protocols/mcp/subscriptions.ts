import { matchResource } from './offer/match-resource.ts'
import type { McpResource } from './offer/offer.ts'

/** The documents that one client wants to hear of. They end with its connection. */
export class Subscriptions {
  private readonly changed: (uri: string) => Promise<void>
  private readonly watched: Map<string, AbortController> = new Map()

  constructor(changed: (uri: string) => Promise<void>) {
    this.changed = changed
  }

  /** Begins to tell of a document. Documents that cannot change are never told of. */
  add(resources: readonly McpResource[], uri: string): void {
    if (this.watched.has(uri) || this.watched.size >= MOST) return
    const leaving = new AbortController()
    this.watched.set(uri, leaving)
    for (const resource of resources) {
      const gaps = matchResource(resource.uri, uri)
      if (gaps === undefined) continue
      const tell = () => {
        this.changed(uri).catch(() => this.drop(uri))
      }
      // Whoever may not see it hears nothing.
      resource.watch?.(gaps, tell, leaving.signal).catch(() => this.drop(uri))
      return
    }
  }

  drop(uri: string): void {
    this.watched.get(uri)?.abort()
    this.watched.delete(uri)
  }

  end(): void {
    for (const uri of [...this.watched.keys()]) this.drop(uri)
  }
}

const MOST = 100
