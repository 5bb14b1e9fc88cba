// next.config.mjs
const python = process.env.CHAT_ORIGIN ?? "http://127.0.0.1:8000";

export default {
  rewrites: async () => [
    { source: "/api/login", destination: `${python}/api/login` },
    { source: "/api/chat/:path*", destination: `${python}/api/chat/:path*` },
  ],
};
