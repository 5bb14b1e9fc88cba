// app/chat/[id]/SignIn.tsx
"use client";
import { useRouter } from "next/navigation";

export default function SignIn() {
  const router = useRouter();
  const signIn = async (form: FormData) => {
    const body = JSON.stringify({ name: form.get("name") });
    const response = await fetch("/api/login", { method: "POST", headers: { "content-type": "application/json" }, body });
    if (response.ok) router.refresh(); // the server component runs again, now with the cookie
  };
  return <form action={signIn}><input name="name" aria-label="Name" placeholder="Name" /> <button>Sign in</button></form>;
}
