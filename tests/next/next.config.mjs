/** As in docs/reference/http.md: the chat API is served under the page's own origin. */
export default {
  async rewrites() {
    return [{ source: "/api/chat/:path*", destination: `${process.env.CHAT_ORIGIN}/api/chat/:path*` }];
  },
};
